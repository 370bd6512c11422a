// The page's address: one query parameter for each control that is not at its start, so that a link shares a state.
// `rooflines.roofline-B=64` is a value; `rooflines.roofline.B=6` is a slider's position, which is used only until
// Python has converted it to a value.
import { book } from "../book.mjs";
import { isSlider } from "./controls.mjs";
/** @import { Controls } from "./controls.mjs" */
/** @import { Painted } from "./view.mjs" */

const FRAME_PX = 720;
const REST_MS = 250; // dragging a slider would write the address at every event, which browsers refuse

export class Address {
  /**
   * @param {string} name the explorer's key; the second explorer with the same key on a page has the suffix ~2
   * @param {Controls} controls
   */
  constructor(name, controls) {
    this.name = name;
    this.controls = controls;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** @type {Pick<Painted, "values" | "state">} */
    this.known = {};
  }

  /** Store the values that Python last returned for the sliders' positions. @param {Painted} painted */
  know({ values, state }) { this.known = { values, state }; }

  /** Write the state to the address once the controls are at rest. */
  remember() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), REST_MS);
  }

  write() {
    const url = new URL(location.href);
    for (const control of Object.keys(this.controls.start)) for (const mark of ".-") url.searchParams.delete(this.name + mark + control);
    for (const [name, value] of this.parameters()) url.searchParams.set(name, value);
    if (url.href !== location.href) history.replaceState(history.state, "", url);
  }

  /** The address of this explorer in its chapter, with its current state. @param {string} anchor */
  link(anchor) {
    const { home } = document.documentElement.dataset; // set on a standalone page
    return this.addressed(new URL(`${home ?? location.pathname}#${anchor}`, location.href));
  }

  /** The HTML of a frame that embeds this explorer in another page, with its current state. @param {string} title */
  frame(title) {
    const [key] = this.name.split("~");
    const frame = document.createElement("iframe");
    frame.src = this.addressed(new URL(`embed/${key.replace(".", "-")}.html`, book), key);
    frame.title = title;
    frame.loading = "lazy";
    frame.width = "100%";
    frame.height = String(FRAME_PX);
    return frame.outerHTML;
  }

  /** @param {URL} url */
  addressed(url, key = this.name) {
    for (const [name, value] of this.parameters()) url.searchParams.set(key + name.slice(this.name.length), value);
    return url.href;
  }

  /**
   * The controls that differ from their initial state, as values, or as positions that Python has not converted yet.
   * @returns {[string, string][]}
   */
  parameters() {
    const { values = {}, state = {} } = this.known, { start } = this.controls;
    return Object.entries(this.controls.state()).filter(([control, held]) => held !== start[control]).map(([control, held]) => {
      if (!this.slides(control)) return [`${this.name}-${control}`, String(held)];
      const known = control in values && state[control] === held;
      return known ? [`${this.name}-${control}`, String(values[control])] : [`${this.name}.${control}`, String(held)];
    });
  }

  /** Whether a control's state is a slider position. @param {string} control */
  slides(control) { return this.controls.inputs.some((one) => one.name === control && isSlider(one) && !("steps" in one.dataset)); }

  /**
   * The states of inputs in the address, and the values that Python has to convert to positions, for existing controls.
   * @returns {{ states: Record<string, string>, values: Record<string, string> }}
   */
  wanted() {
    /** @type {{ states: Record<string, string>, values: Record<string, string> }} */
    const wanted = { states: {}, values: {} };
    for (const [name, text] of new URLSearchParams(location.search)) {
      const mark = name[this.name.length] ?? "", control = name.slice(this.name.length + 1);
      if (!name.startsWith(this.name) || !".-".includes(mark) || !(control in this.controls.start)) continue;
      wanted[mark === "-" && this.slides(control) ? "values" : "states"][control] = text;
    }
    return wanted;
  }
}
