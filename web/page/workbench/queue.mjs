// Asks Python one question at a time; a newer set-up ends a search that has run for more than four seconds.
/** @import { Engine } from "../engine.mjs" */

const MAX_SEARCH_MS = 4000; // starting Python again takes about as long

export class Queue {
  /**
   * @param {Engine} engine
   * @param {[object, unknown][]} known questions that were answered when the page was built
   */
  constructor(engine, known) {
    this.engine = engine;
    this.round = 0;
    this.asked_ms = 0; // start time of the question that is being answered; 0 if there is none
    /** @type {Promise<unknown>} */
    this.last = Promise.resolve();
    /** @type {Map<string, any>} */
    this.known = new Map(known.map(([question, answer]) => [JSON.stringify(question), answer]));
  }

  /** Begin a round: earlier questions are rejected, and a search that has run too long is ended. @returns {number} the round */
  begin() {
    if (this.asked_ms && performance.now() - this.asked_ms > MAX_SEARCH_MS) this.restart();
    return ++this.round;
  }

  restart() {
    const { engine } = this;
    if (engine.state !== "live" || !engine.worker) return;
    for (const { reject } of engine.waiting.values()) reject(new Error("a newer setup was requested"));
    engine.waiting.clear();
    engine.respawnWorker(engine.worker);
  }

  /** @param {number} round */
  current(round) { return round === this.round; }

  /**
   * The answer of Python; rejected if a newer round has begun.
   * @param {object} question
   * @returns {Promise<any>}
   */
  ask(question) {
    const { round } = this, asked = JSON.stringify(question);
    const answer = this.last.then(async () => {
      if (!this.current(round)) throw new Error("a newer setup was requested");
      if (!this.known.has(asked)) this.known.set(asked, await this.live(asked));
      if (!this.current(round)) throw new Error("a newer setup was requested");
      return this.known.get(asked);
    });
    this.last = answer.catch(() => {});
    return answer;
  }

  /** @param {string} asked */
  async live(asked) {
    this.asked_ms = performance.now();
    try { return await this.engine.ask("workbench", asked); } finally { this.asked_ms = 0; }
  }
}
