// One question at a time, so that a newer set-up never waits for more than one old search.
/** @import { Engine } from "../engine.mjs" */

export class Queue {
  /**
   * @param {Engine} engine
   * @param {[object, unknown][]} known questions that were answered when the page was built
   */
  constructor(engine, known) {
    this.engine = engine;
    this.round = 0;
    /** @type {Promise<unknown>} */
    this.last = Promise.resolve();
    /** @type {Map<string, any>} */
    this.known = new Map(known.map(([question, answer]) => [JSON.stringify(question), answer]));
  }

  /** From now on, what was asked before is dropped. */
  begin() { return ++this.round; }

  /** @param {number} round */
  current(round) { return round === this.round; }

  /**
   * What Python answers; rejected where a newer round has begun.
   * @param {object} question
   * @returns {Promise<any>}
   */
  ask(question) {
    const { round } = this, asked = JSON.stringify(question);
    const answer = this.last.then(async () => {
      if (!this.current(round)) throw new Error("a newer set-up is asked for");
      if (!this.known.has(asked)) this.known.set(asked, await this.engine.ask("workbench", asked));
      if (!this.current(round)) throw new Error("a newer set-up is asked for");
      return this.known.get(asked);
    });
    this.last = answer.catch(() => {});
    return answer;
  }
}
