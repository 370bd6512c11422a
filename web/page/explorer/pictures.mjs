// The pictures of one explorer that Python has made: each state is asked for once.
/** @import { Engine } from "../engine.mjs" */
/** @import { State } from "./controls.mjs" */
/** @import { Painted } from "./view.mjs" */

const STORED = 512; // pictures of one explorer that are stored: a whole slider, in a few megabytes
const LONG_MS = 100; // in the worker: a reader's own event may wait for one that is made ahead

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
    /** @type {Map<string, Painted>} */
    this.stored = new Map(); // the oldest first
    /** @type {Map<string, Promise<Painted>>} */
    this.coming = new Map();
    this.long = 0; // pictures in a row that took long; the first may have loaded its chapter
  }

  /** Whether a picture may be made ahead. */
  get quick() { return this.long < 2; }

  /**
   * The answer, where it is there already.
   * @param {State} state
   * @param {boolean} wide
   */
  ready(state, wide) { return this.stored.get(question(state, wide)); }

  /**
   * The answer, from Python where it has to be.
   * @param {State} state
   * @param {boolean} wide
   */
  async fetch(state, wide) {
    const asked = question(state, wide), there = this.stored.get(asked) ?? this.coming.get(asked);
    if (there !== undefined) return there;
    const coming = this.paint(state, wide);
    this.coming.set(asked, coming);
    try { this.store(asked, await coming); } finally { this.coming.delete(asked); }
    return coming;
  }

  /**
   * @param {State} state
   * @param {boolean} wide
   * @returns {Promise<Painted>}
   */
  async paint(state, wide) {
    const { text, ms = 0 } = await this.engine.answer("paint", this.key, JSON.stringify(state), wide);
    this.long = ms < LONG_MS ? 0 : this.long + 1;
    return JSON.parse(text);
  }

  /**
   * @param {string} asked
   * @param {Painted} painted
   */
  store(asked, painted) {
    this.stored.set(asked, painted);
    const [oldest] = this.stored.keys();
    if (this.stored.size > STORED) this.stored.delete(oldest);
  }
}
