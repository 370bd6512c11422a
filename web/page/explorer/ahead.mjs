// Looking ahead: while a reader thinks, the worker makes the pictures that the next move will ask for.
import { isSlider } from "./controls.mjs";
import { question } from "./pictures.mjs";
/** @import { Controls } from "./controls.mjs" */
/** @import { Pictures } from "./pictures.mjs" */
/** @import { View } from "./view.mjs" */

/** @typedef {{ slider: HTMLInputElement, value: number, next: number }} Move where a slider is, and where it may go */

/**
 * All positions of a slider, from where it is likely to be next, and from where it is, outwards.
 * @param {Move} move
 */
function* positions({ slider, value, next }) {
  const low = Number(slider.min), high = Number(slider.max), step = Number(slider.step) || 1;
  for (let far = 0; far <= high - low; far += step) {
    for (const one of [next + far, next - far, value + far, value - far]) if (one >= low && one <= high) yield one;
  }
}

export class Ahead {
  /** @type {Ahead | undefined} */
  static newest = undefined; // of a page, the one that was touched last: it alone looks ahead

  /**
   * @param {{ controls: Controls, view: View, pictures: Pictures, busy: () => boolean }} parts
   */
  constructor({ controls, view, pictures, busy }) {
    this.controls = controls;
    this.view = view;
    this.pictures = pictures;
    this.busy = busy; // whether a reader's own event is on its way
    this.looking = false;
    /** @type {Move | undefined} */
    this.last = undefined;
    /** @type {Generator<number> | undefined} */
    this.likely = undefined;
    this.rest = ""; // what all other controls hold
    /** @type {Set<number>} */
    this.made = new Set(); // positions of the last slider, with the rest as it is
  }

  /**
   * A control was touched: a slider's next move is likely as long as its last, then comes what is near, in the end all.
   * @param {EventTarget | null} target
   */
  expect(target) {
    if (!this.controls.inputs.some((input) => input === target)) return;
    Ahead.newest = this;
    if (isSlider(target)) {
      const value = Number(target.value);
      const next = this.last?.slider === target ? 2 * value - this.last.value : value;
      this.last = { slider: target, value, next };
    }
    if (!this.last) return;
    const rest = question({ ...this.controls.state(), [this.last.slider.name]: null }, this.view.wide());
    if (this.rest !== rest) this.made = new Set();
    this.rest = rest;
    this.likely = positions(this.last);
    this.look();
  }

  /** Make one picture after the other, until a reader's event comes in between, or another explorer's turn. */
  async look() {
    if (this.looking || this.pictures.engine.state !== "live") return;
    this.looking = true;
    try {
      while (!this.busy() && Ahead.newest === this && this.pictures.quick && this.last) {
        const { value, done } = this.likely?.next() ?? { value: 0, done: true };
        if (done) break;
        if (this.made.has(value)) continue;
        this.made.add(value);
        await this.pictures.fetch({ ...this.controls.state(), [this.last.slider.name]: value }, this.view.wide());
      }
    } catch { /* the status says why */ }
    this.looking = false;
  }
}
