// Shows Python's answer in an explorer: picture, numbers, verdict and error, in a box whose height never jumps.
import { find, need } from "../dom.mjs";
import { announce } from "./aloud.mjs";
import { become } from "./morph.mjs";
/** @import { State } from "./controls.mjs" */

const HEAD_PX = 64; // height of the sticky header, with a margin
const SHORT_MS = 150; // a picture that arrives sooner is not preceded by dimming
const SMALL = 0.85, LEAST = 0.66; // scale factors: to fit a low window, a figure is never drawn smaller than is legible

/**
 * Python's answer to one state of the controls; after an error the last picture stays.
 * @typedef {object} Painted
 * @property {string} [error]
 * @property {Record<string, string>} [outputs] the label of each control's position
 * @property {Record<string, number>} [values] the value at each slider's position
 * @property {State} [state] the state of the controls
 * @property {string} figure HTML
 * @property {string} readouts HTML
 * @property {string} verdict
 * @property {number} frames the number of steps to play
 */

export class View {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.figure = need(root, ".ex-figure", HTMLElement);
    this.drawn = ""; // the visible picture, once it differs from the built one
    this.controls = need(root, ".ex-controls", HTMLElement);
    this.verdict = need(root, ".ex-verdict", HTMLElement);
    this.error = need(root, ".ex-error", HTMLElement);
    this.readouts = need(root, ".ex-readouts", HTMLElement);
    this.end = need(root, ".ex-note", HTMLElement); // below everything else, and never sticky
    for (const told of [this.verdict, this.error]) for (const name of ["aria-live", "role"]) told.removeAttribute(name);
    this.error.id = `${root.id}-error`;
    /** @type {HTMLElement | null} */
    this.blamed = null; // the input above the error
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.waiting = undefined;
    /** @type {boolean | undefined} */
    this.isWide = undefined;
    this.height = this.figureHeight = this.foot = 0;
    this.grown = new ResizeObserver(() => { if (this.height) this.settle(); });
    for (const one of [this.figure, this.controls, this.verdict, this.readouts]) this.grown.observe(one);
  }

  /** Whether the wide picture is visible; read from the stylesheet only once, because reading forces a layout. */
  wide() {
    if (this.isWide === undefined) {
      const wide = find(this.figure, ".ex-wide", HTMLElement);
      this.isWide = !wide || getComputedStyle(wide).display !== "none";
    }
    return this.isWide;
  }

  /** After a change of the window: whether the other picture is visible now and has to be painted. */
  refit() {
    const before = this.isWide;
    this.isWide = undefined;
    return before !== undefined && before !== this.wide() && this.drawn !== "";
  }

  /** Dim the picture, which is older than the controls; at once if Python is not ready yet. @param {boolean} live */
  wait(live) {
    clearTimeout(this.waiting);
    const dim = () => { this.root.classList.add("ex-pending"); this.root.setAttribute("aria-busy", "true"); };
    if (live) this.waiting = setTimeout(dim, SHORT_MS); else dim();
  }

  /** End the dimming when the picture has arrived; after a failure the old picture stays dim. @param {boolean} failed */
  waited(failed) {
    clearTimeout(this.waiting);
    this.root.removeAttribute("aria-busy");
    if (!failed) this.root.classList.remove("ex-pending");
  }

  /**
   * @param {Painted} painted
   * @param {boolean} wide
   * @param {HTMLElement | null} touched the input that was moved last
   */
  show(painted, wide, touched) {
    this.waited(false);
    this.blame(painted.error, touched);
    if (!painted.error) this.replace(painted, wide);
    // there is time for it between frames; a drag event comes at the start of a frame, which lays the page out anyway
    if (!this.height || !this.root.matches(":active")) this.settle();
    announce(painted.error ?? painted.verdict);
  }

  /**
   * Show an error under its field, and dim the picture, which belongs to another state.
   * @param {string | undefined} error
   * @param {HTMLElement | null} touched
   */
  blame(error, touched) {
    this.root.classList.toggle("ex-stale", Boolean(error));
    this.error.textContent = error ?? "";
    this.error.hidden = !error;
    const field = error ? this.blamed ?? touched ?? find(this.controls, "input[type=text]", HTMLElement) : null;
    if (field === this.blamed) return;
    for (const one of [this.blamed, field]) this.mark(one, one === field);
    this.blamed = field;
    (field?.closest(".ex-control") ?? this.root).append(this.error);
  }

  /**
   * @param {HTMLElement | null} field
   * @param {boolean} wrong
   */
  mark(field, wrong) {
    if (!field) return;
    const others = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== this.error.id);
    const described = wrong ? [...others, this.error.id] : others;
    if (described.length) field.setAttribute("aria-describedby", described.join(" ")); else field.removeAttribute("aria-describedby");
    if (wrong) field.setAttribute("aria-invalid", "true"); else field.removeAttribute("aria-invalid");
  }

  /**
   * @param {Painted} painted
   * @param {boolean} wide
   */
  replace(painted, wide) {
    become(need(this.figure, wide ? ".ex-wide" : ".ex-narrow", HTMLElement), painted.figure);
    this.drawn = painted.figure;
    if (this.verdict.textContent !== painted.verdict) this.verdict.textContent = painted.verdict;
    become(this.readouts, painted.readouts);
  }

  /**
   * Lay out the box now, while the frame has time. Its fixed height only grows, so that the page below stays where
   * it is, and the browser does not have to lay it out for every event.
   */
  settle() {
    const { top } = this.root.getBoundingClientRect();
    if (this.figure.offsetHeight > this.figureHeight) {
      this.figureHeight = this.figure.offsetHeight;
      this.figure.style.minHeight = `${this.figureHeight}px`;
    }
    const height = Math.ceil(this.end.getBoundingClientRect().bottom - top + this.foot);
    if (height <= this.height) return;
    this.height = height;
    this.root.style.height = `${height}px`;
    this.root.classList.add("settled");
  }

  /** Give the box the height of its content. */
  release() {
    this.height = this.figureHeight = 0;
    this.root.classList.remove("settled");
    this.root.style.height = this.figure.style.minHeight = "";
  }

  /** Reset the box after a change of the window: the figure has its natural size until it is fitted. */
  loosen() {
    this.release();
    this.root.style.removeProperty("--ex-fit");
    const { paddingBottom, borderBottomWidth } = getComputedStyle(this.root);
    this.foot = parseFloat(paddingBottom) + parseFloat(borderBottomWidth);
  }

  /**
   * The scale factor of the figure at which controls, figure and verdict are in this window at once; also the
   * numbers, unless the figure would have to be small for them. If it would be too small, the verdict goes above it.
   */
  share() {
    const { top } = this.controls.getBoundingClientRect(), { bottom } = this.end.getBoundingClientRect();
    const high = this.figure.offsetHeight, numbers = this.readouts.offsetHeight;
    const left = innerHeight - HEAD_PX - (bottom - top - high); // height left for the figure
    const share = Math.max(left / high, Math.min((left + numbers) / high, SMALL));
    return high ? Math.min(1, share) : 1;
  }

  /** Fit only this explorer, if its picture was painted after the window changed. */
  fit() {
    this.loosen();
    this.shrink(this.share());
  }

  /** @param {number} share */
  shrink(share) {
    if (share < 1) this.root.style.setProperty("--ex-fit", Math.max(share, LEAST).toFixed(3));
    this.root.classList.toggle("ex-tall", share < LEAST);
  }
}
