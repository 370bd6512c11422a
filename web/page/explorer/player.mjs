// Plays the steps of an explorer: moves their slider, and lets a button start and stop it.
const FRAME_MS = 700; // how long a step shows while it plays
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Player {
  /**
   * @param {HTMLInputElement} steps
   * @param {HTMLButtonElement | null} button
   * @param {(input: HTMLInputElement) => void} touched the callback of a moved slider
   */
  constructor(steps, button, touched) {
    this.steps = steps;
    this.button = button;
    this.touched = touched;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.playing = undefined;
  }

  /** Set the number of steps that the picture now has. @param {number} count */
  count(count) { if (Number(this.steps.max) !== count - 1) this.steps.max = String(count - 1); }

  /** Extend the slider to a step from the address, because the number of steps is known only after painting. @param {number} step */
  allow(step) { this.steps.max = String(Math.max(Number(this.steps.max), step || 0)); }

  atEnd() { return Number(this.steps.value) >= Number(this.steps.max); }

  /** Play or pause; if the reader prefers reduced motion, advance one step per press. */
  toggle() {
    if (this.playing) this.pause();
    else if (calm.matches) this.advance();
    else this.play();
  }

  play() {
    if (this.atEnd()) this.goTo(0);
    this.playing = setInterval(() => { if (!this.advance()) this.pause(); }, FRAME_MS);
    this.show(true);
    if (!this.atEnd()) this.advance();
  }

  pause() {
    if (!this.playing) return;
    clearInterval(this.playing);
    this.playing = undefined;
    this.show(false);
  }

  /** Advance one step, wrapping around only if each step is a press; return whether more steps follow. */
  advance() {
    const last = this.atEnd();
    if (last && !calm.matches) return false;
    this.goTo(last ? 0 : Number(this.steps.value) + 1);
    return !this.atEnd();
  }

  /** @param {number} step */
  goTo(step) {
    this.steps.value = String(step);
    this.touched(this.steps);
  }

  /** @param {boolean} playing */
  show(playing) {
    this.button?.setAttribute("aria-pressed", String(playing));
    if (this.button) this.button.textContent = playing ? "Pause" : "Play";
  }
}
