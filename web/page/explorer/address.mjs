// The page's address: one query parameter for each control that is not at its start, so that a link shares a state.
/** @import { Controls } from "./controls.mjs" */

const REST_MS = 250; // a slider that is dragged would write the address at every event; browsers refuse that

export class Address {
  /**
   * @param {string} name the explorer's key; the second of one key on a page has ~2 behind it
   * @param {Controls} controls
   */
  constructor(name, controls) {
    this.name = name;
    this.controls = controls;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** Write the state, once the controls rest. */
  remember() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), REST_MS);
  }

  write() {
    const url = new URL(location.href), { start } = this.controls;
    for (const control of Object.keys(start)) url.searchParams.delete(`${this.name}.${control}`);
    for (const [control, value] of Object.entries(this.controls.state())) {
      if (value !== start[control]) url.searchParams.set(`${this.name}.${control}`, String(value));
    }
    if (url.href !== location.href) history.replaceState(history.state, "", url);
  }

  /** What the address asks for, of the controls that there are. @returns {Record<string, string>} */
  wanted() {
    const prefix = `${this.name}.`;
    return Object.fromEntries([...new URLSearchParams(location.search)]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), value])
      .filter(([control]) => control in this.controls.start));
  }
}
