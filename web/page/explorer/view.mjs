// Where an explorer shows what Python answered: picture, numbers, verdict, error, in a box that never jumps.
import { find, need } from "../dom.mjs";
import { become } from "./morph.mjs";

/**
 * What Python answers to one state of the controls; after an error the last picture stays.
 * @typedef {object} Painted
 * @property {string} [error]
 * @property {Record<string, string>} [outputs] by control: what its position means
 * @property {string} figure HTML
 * @property {string} readouts HTML
 * @property {string} verdict
 * @property {number} frames how many steps there are to play
 */

export class View {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.figure = need(root, ".ex-figure", HTMLElement);
    /** @type {boolean | undefined} */
    this.isWide = undefined;
    this.moved = false; // whether anything but the built picture was shown
    this.height = this.figureHeight = this.foot = 0;
    this.loosen();
  }

  /** Which of the two pictures a reader sees; asked of the stylesheet once, because asking lays the page out. */
  wide() {
    if (this.isWide === undefined) {
      const wide = find(this.root, ".ex-wide", HTMLElement);
      this.isWide = !wide || getComputedStyle(wide).display !== "none";
    }
    return this.isWide;
  }

  /** After the window changed: whether the other picture is seen now, and has to be painted. */
  refit() {
    const before = this.isWide;
    this.isWide = undefined;
    this.loosen();
    return before !== undefined && before !== this.wide() && this.moved;
  }

  /**
   * @param {Painted} painted
   * @param {boolean} wide
   */
  show(painted, wide) {
    const error = find(this.root, ".ex-error", HTMLElement);
    if (error) {
      error.textContent = painted.error ?? "";
      error.hidden = !painted.error;
    }
    if (!painted.error) this.replace(painted, wide);
    this.settle();
  }

  /**
   * @param {Painted} painted
   * @param {boolean} wide
   */
  replace(painted, wide) {
    this.moved = true;
    become(need(this.root, wide ? ".ex-wide" : ".ex-narrow", HTMLElement), painted.figure);
    const verdict = find(this.root, ".ex-verdict", HTMLElement);
    if (verdict && verdict.textContent !== painted.verdict) verdict.textContent = painted.verdict;
    const readouts = find(this.root, ".ex-readouts", HTMLElement);
    if (readouts) become(readouts, painted.readouts);
  }

  /**
   * Lay it out now, while the frame has time. The box takes a fixed height that only grows: the page below stays where
   * it is, and the browser need not look at it for every event.
   */
  settle() {
    const { top } = this.root.getBoundingClientRect();
    if (this.figure.offsetHeight > this.figureHeight) {
      this.figureHeight = this.figure.offsetHeight;
      this.figure.style.minHeight = `${this.figureHeight}px`;
    }
    const bottom = Math.max(...[...this.root.children].map((child) => child.getBoundingClientRect().bottom));
    const height = Math.ceil(bottom - top + this.foot);
    if (height <= this.height) return;
    this.height = height;
    this.root.style.height = `${height}px`;
    this.root.classList.add("settled");
  }

  /** Let the box take the height that its content has in this window. */
  loosen() {
    this.height = this.figureHeight = 0;
    this.root.classList.remove("settled");
    this.root.style.height = this.figure.style.minHeight = "";
    const { paddingBottom, borderBottomWidth } = getComputedStyle(this.root);
    this.foot = parseFloat(paddingBottom) + parseFloat(borderBottomWidth);
  }
}
