// One set-up: the fields of a form, what an address holds of them, and an error under the field that it is of.
import { all, need } from "../dom.mjs";

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Entry */
/** @typedef {{ values: Record<string, string>, config: string }} Values */

export class Setup {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.refused = false;
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

  /** @returns {Values} */
  values() {
    const { config = "", ...values } = Object.fromEntries(this.entries().map((one) => [one.name, one.value]));
    return { values, config };
  }

  /**
   * What differs from the start, for an address.
   * @param {string} prefix
   * @returns {[string, string][]}
   */
  changed(prefix) {
    return this.entries().filter((one) => prefix || one.value !== this.starts.get(one.name))
      .map((one) => [prefix + one.name, one.value]);
  }

  /**
   * @param {URLSearchParams} told
   * @param {string} prefix
   */
  follow(told, prefix) {
    for (const one of this.entries()) one.value = told.get(prefix + one.name) ?? (prefix ? one.value : this.starts.get(one.name) ?? "");
  }

  /** A second one beside this, with the same values and ids of its own. */
  copy() {
    const form = /** @type {HTMLFormElement} */ (this.form.cloneNode(true));
    for (const one of all(form, "[id]", HTMLElement)) one.id += "-b";
    for (const one of all(form, "label", HTMLLabelElement)) one.htmlFor += "-b";
    for (const one of all(form, "[aria-describedby]", HTMLElement)) one.setAttribute("aria-describedby", `${one.getAttribute("aria-describedby")}-b`);
    need(form, "legend", HTMLElement).textContent = "Second set-up";
    form.addEventListener("submit", (event) => event.preventDefault());
    const made = new Setup(form), { values, config } = this.values();
    for (const one of made.entries()) one.value = { ...values, config }[one.name] ?? "";
    made.clear();
    return made;
  }

  clear() {
    this.refused = false;
    for (const one of all(this.form, ".workbench-error", HTMLElement)) one.hidden = true;
    for (const one of this.entries()) one.removeAttribute("aria-invalid");
  }

  /**
   * Under the field that an answer refuses; under the first where it names none.
   * @param {{ error?: string, field?: string }} answer
   */
  refuse({ error, field }) {
    if (!error) return;
    const pasted = field === "model" && this.values().config.trim();
    const entry = need(this.form, `[name="${pasted ? "config" : field || "model"}"]`, HTMLElement);
    const place = need(entry.parentElement ?? this.form, ".workbench-error", HTMLElement);
    place.textContent = error;
    place.hidden = false;
    entry.setAttribute("aria-invalid", "true");
    this.refused = true;
  }
}
