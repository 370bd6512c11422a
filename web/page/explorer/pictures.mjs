// The pictures of one explorer that Python has drawn; each state is requested only once.
/** @import { Engine } from "../engine.mjs" */
/** @import { State } from "./controls.mjs" */
/** @import { Painted } from "./view.mjs" */

const STORED = 512; // pictures per explorer: enough for a whole slider, in a few megabytes

/**
 * @param {State} state
 * @param {boolean} wide
 */
const question = (state, wide) => JSON.stringify([state, wide]);

export class Pictures {
  /**
   * @param {Engine} engine
   * @param {string} key of the explorer, in the library
   */
  constructor(engine, key) {
    this.engine = engine;
    this.key = key;
    /** @type {Map<string, Painted>} */
    this.stored = new Map(); // the oldest first
  }

  /**
   * The answer, if it is stored already.
   * @param {State} state
   * @param {boolean} wide
   */
  ready(state, wide) { return this.stored.get(question(state, wide)); }

  /**
   * The answer, from Python if it is not stored.
   * @param {State} state
   * @param {boolean} wide
   * @returns {Promise<Painted>}
   */
  async fetch(state, wide) {
    const known = this.ready(state, wide);
    if (known) return known;
    /** @type {Painted} */
    const painted = await this.engine.ask("paint", this.key, JSON.stringify(state), wide);
    this.stored.set(question(state, wide), painted);
    const [oldest] = this.stored.keys();
    if (this.stored.size > STORED) this.stored.delete(oldest);
    return painted;
  }
}
