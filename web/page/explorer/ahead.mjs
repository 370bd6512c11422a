// Looking ahead: while a reader thinks, the worker makes the pictures that the next move will ask for.
import { isSlider } from "./controls.mjs";
import { question } from "./pictures.mjs";
/** @import { Controls } from "./controls.mjs" */
/** @import { Pictures } from "./pictures.mjs" */
/** @import { View } from "./view.mjs" */

const ALL = 400; // a slider of so many positions has a picture of each made
const NEAR = 2; // positions, where there are more

/** @typedef {{ slider: HTMLInputElement, value: number, strides: number[] }} Move where a slider is, and its last moves' lengths */

/** How many positions it has. @param {HTMLInputElement} slider */
const count = (slider) => (Number(slider.max) - Number(slider.min)) / (Number(slider.step) || 1) + 1;

/**
 * Positions of a slider, from where it is likely to be next, and from where it is, outwards.
 * @param {Move} move
 */
function* positions({ slider, value, strides }) {
  const low = Number(slider.min), high = Number(slider.max), step = Number(slider.step) || 1;
  const reach = count(slider) > ALL ? NEAR * step : high - low;
  for (let far = 0; far <= reach; far += step) {
    const ends = [...strides, 0].flatMap((stride) => [value + stride + far, value + stride - far]);
    yield* ends.filter((one) => one >= low && one <= high);
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
   * A control was touched: a slider's next move is likely as long as one of its last two, then comes what is near.
   * @param {EventTarget | null} target
   */
  expect(target) {
    if (!this.controls.inputs.some((input) => input === target)) return;
    if (Ahead.newest !== this) Ahead.newest?.forget();
    Ahead.newest = this;
    if (isSlider(target)) {
      const value = Number(target.value);
      const before = this.last?.slider === target ? this.last : { value, strides: [] };
      this.last = { slider: target, value, strides: [value - before.value, ...before.strides.slice(0, 1)] };
    }
    if (!this.last) return;
    const rest = question({ ...this.controls.state(), [this.last.slider.name]: null }, this.view.wide());
    if (this.rest !== rest) this.forget();
    if (count(this.last.slider) > ALL) this.made.clear(); // not all are stored for long
    this.rest = rest;
    this.likely = positions(this.last);
    this.look();
  }

  /** Other pictures will be asked for than those that were made. */
  forget() { this.made.clear(); }

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
        await this.make(this.last.slider, value);
      }
    } catch { /* the status says why */ }
    this.looking = false;
  }

  /**
   * @param {HTMLInputElement} slider
   * @param {number} value
   */
  async make(slider, value) {
    await this.pictures.fetch({ ...this.controls.state(), [slider.name]: value }, this.view.wide());
  }
}
