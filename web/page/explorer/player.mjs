// Steps that play: the slider of the steps moves by itself, and a button starts and stops it.
const FRAME_MS = 700; // how long a step shows while it plays
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Player {
  /**
   * @param {HTMLInputElement} steps
   * @param {HTMLButtonElement | null} button
   * @param {(input: HTMLInputElement) => void} touched what a moved slider calls
   */
  constructor(steps, button, touched) {
    this.steps = steps;
    this.button = button;
    this.touched = touched;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.playing = undefined;
  }

  /** How many steps the picture now has. @param {number} count */
  count(count) { if (Number(this.steps.max) !== count - 1) this.steps.max = String(count - 1); }

  /** Let the slider go as far as an address asks: the picture knows its steps only when it is painted. @param {number} step */
  allow(step) { this.steps.max = String(Math.max(Number(this.steps.max), step || 0)); }

  atEnd() { return Number(this.steps.value) >= Number(this.steps.max); }

  /** Play or pause; where motion is not wanted, one step for one press. */
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

  /** Go one step on, from the last to the first only where each step is a press; whether more follow. */
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
