// One set-up: the fields of a form, their values in an address, and notes and errors below fields.
import { all, need } from "../dom.mjs";

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Entry */
/** @typedef {{ values: Record<string, string>, config: string }} Values */

export class Setup {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.refused = false;
    /** @type {string | undefined} the model that was typed, while a pasted config.json names another one */
    this.typed = undefined;
    /** @type {Map<string, string>} */
    this.starts = new Map(this.entries().map((one) => [one.name, this.start(one)]));
  }

  entries() {
    return /** @type {Entry[]} */ (all(this.form, "[name]", HTMLElement));
  }

  /** @param {Entry} entry */
  start(entry) {
    return entry instanceof HTMLSelectElement ? entry.options[0]?.value ?? "" : entry.defaultValue;
  }

  /** @param {Entry} entry */
  value(entry) { return entry.name === "model" ? this.typed ?? entry.value : entry.value; }

  /** @returns {Values} */
  values() {
    const { config = "", ...values } = Object.fromEntries(this.entries().map((one) => [one.name, this.value(one)]));
    return { values, config };
  }

  /**
   * Show the name of a pasted config.json in the model field, or without one the typed model.
   * @param {string} model as the config names it, or ""
   */
  name(model) {
    const entry = need(this.form, '[name="model"]', HTMLInputElement);
    if (model) {
      this.typed ??= entry.value;
      entry.value = `${model} (config.json)`;
    } else if (this.typed !== undefined) {
      entry.value = this.typed;
      this.typed = undefined;
    }
    entry.readOnly = Boolean(model);
  }

  /**
   * The values that differ from the initial ones, for an address.
   * @param {string} prefix
   * @returns {[string, string][]}
   */
  changed(prefix) {
    return this.entries().filter((one) => prefix || this.value(one) !== this.starts.get(one.name))
      .map((one) => [prefix + one.name, this.value(one)]);
  }

  /**
   * @param {URLSearchParams} told
   * @param {string} prefix
   */
  follow(told, prefix) {
    this.name("");
    for (const one of this.entries()) one.value = told.get(prefix + one.name) ?? (prefix ? one.value : this.starts.get(one.name) ?? "");
  }

  /** A second set-up beside this one, with the same values and its own ids. */
  copy() {
    const form = /** @type {HTMLFormElement} */ (this.form.cloneNode(true));
    for (const one of all(form, "[id]", HTMLElement)) one.id += "-b";
    for (const one of all(form, "label", HTMLLabelElement)) one.htmlFor += "-b";
    for (const one of all(form, "[aria-describedby]", HTMLElement)) one.setAttribute("aria-describedby", `${one.getAttribute("aria-describedby")}-b`);
    need(form, "legend", HTMLElement).textContent = "Second setup";
    form.addEventListener("submit", (event) => event.preventDefault());
    const made = new Setup(form), { values, config } = this.values();
    need(form, '[name="model"]', HTMLInputElement).readOnly = false;
    for (const one of made.entries()) one.value = { ...values, config }[one.name] ?? "";
    made.clear();
    return made;
  }

  clear() {
    this.refused = false;
    for (const one of all(this.form, ".workbench-error, .workbench-note", HTMLElement)) one.hidden = true;
    for (const one of this.entries()) one.removeAttribute("aria-invalid");
  }

  /**
   * Show below a field how it was read.
   * @param {{ field: string, says: string }} note
   */
  note({ field, says }) { this.say(field, ".workbench-note", says); }

  /**
   * Show an error below the rejected field, or below the first field if none is named.
   * @param {{ error: string, field: string }} problem
   */
  refuse({ error, field }) {
    const pasted = field === "model" && this.values().config.trim();
    this.say(pasted ? "config" : field || "model", ".workbench-error", error).setAttribute("aria-invalid", "true");
    this.refused = true;
  }

  /**
   * @param {string} field
   * @param {string} kind
   * @param {string} text
   */
  say(field, kind, text) {
    const entry = need(this.form, `[name="${field}"]`, HTMLElement);
    const place = need(entry.parentElement ?? this.form, kind, HTMLElement);
    place.textContent = text;
    place.hidden = false;
    return entry;
  }
}
