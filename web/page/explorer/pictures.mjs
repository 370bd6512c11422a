// The pictures of one explorer that Python has made: each state is asked for once.
/** @import { Engine } from "../engine.mjs" */
/** @import { State } from "./controls.mjs" */

const STORED = 512; // pictures of one explorer that are stored: a whole slider, in a few megabytes
const QUICK_MS = 20; // a view that takes longer is not made ahead: the reader's own event must never wait for it

/**
 * @param {State} state
 * @param {boolean} wide
 */
export const question = (state, wide) => JSON.stringify([state, wide]);

export class Pictures {
  /**
   * @param {Engine} engine
   * @param {string} key of the explorer, in the library
   */
  constructor(engine, key) {
    this.engine = engine;
    this.key = key;
    /** @type {Map<string, string>} */
    this.stored = new Map(); // the oldest first
    this.quick = true;
  }

  /**
   * The answer as text, where it is there already.
   * @param {State} state
   * @param {boolean} wide
   */
  ready(state, wide) { return this.stored.get(question(state, wide)); }

  /**
   * The answer as text, from Python where it has to be.
   * @param {State} state
   * @param {boolean} wide
   */
  async fetch(state, wide) {
    const asked = question(state, wide), from = performance.now(), there = this.stored.get(asked);
    if (there !== undefined) return there;
    const painted = await this.engine.text("paint", this.key, JSON.stringify(state), wide);
    this.quick = performance.now() - from < QUICK_MS;
    this.stored.set(asked, painted);
    const [oldest] = this.stored.keys();
    if (this.stored.size > STORED) this.stored.delete(oldest);
    return painted;
  }
}
