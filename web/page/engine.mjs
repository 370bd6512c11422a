// The page's Python: one worker, started once. A question that comes before it is live waits, and none is lost.
import { words } from "./words.mjs";

const PATIENCE_MS = 90_000;
const AGAIN_MS = [1000, 4000]; // a worker whose script did not come is started again after these waits

/** @typedef {"asleep" | "starting" | "live" | "failed"} EngineState */
/** @typedef {"paint" | "place" | "table" | "judge" | "guess" | "hint" | "workbench"} Call */
/** @typedef {(state: EngineState, problem?: string) => void} Listener */
/** @typedef {{ call: Call, args: unknown[], resolve: (answer: string) => void, reject: (problem: Error) => void }} Question */

export class Engine {
  /** @type {EngineState} */
  state = "asleep";
  problem = "";
  /** @type {Worker | undefined} */
  worker = undefined;
  nextId = 0;
  /** @type {Map<number, Question>} */
  waiting = new Map();
  /** @type {Set<Listener>} */
  listeners = new Set();
  tries = 0;
  lost = false; // whether the network failed, and not the book

  constructor() { addEventListener("online", () => { if (this.lost) this.start(); }); }

  /** @param {Listener} listener */
  onchange(listener) { this.listeners.add(listener); }

  /**
   * What the worker answers, read as JSON.
   * @param {Call} call
   * @param {...unknown} args
   */
  async ask(call, ...args) {
    this.start();
    if (this.state === "failed") throw new Error(this.problem);
    /** @type {Promise<string>} */
    const answer = new Promise((resolve, reject) => {
      this.waiting.set(++this.nextId, { call, args, resolve, reject });
      this.worker?.postMessage({ id: this.nextId, call, args });
    });
    return JSON.parse(await answer);
  }

  /** Where the network failed a start, a touch or the network's return begins another. */
  start() {
    if (this.state !== "asleep" && !(this.state === "failed" && this.lost)) return;
    this.tries = 0;
    this.lost = false;
    this.change("starting");
    performance.mark("book:starting");
    this.hire();
  }

  hire() {
    try {
      this.worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    } catch (problem) {
      this.fail(words(problem));
      return;
    }
    this.listen(this.worker);
  }

  /** @param {Worker} worker */
  listen(worker) {
    const timer = setTimeout(() => {
      if (this.state === "starting") this.fail("Python did not start within 90 seconds");
    }, PATIENCE_MS);
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      const wait = event.message ? undefined : AGAIN_MS[this.tries++]; // a script that did not come has no message
      if (wait !== undefined && this.state === "starting") setTimeout(() => this.rehire(worker), wait);
      else this.fail(event.message || "the worker's script could not be loaded", !event.message);
    });
    worker.addEventListener("message", ({ data }) => {
      if (data.ready) {
        clearTimeout(timer);
        performance.mark("book:live");
        this.change("live");
      } else if (data.failed) this.fail(data.failed, data.lost);
      else this.pass(data.id, data.answer);
    });
  }

  /**
   * @param {number} id
   * @param {string} answer JSON
   */
  pass(id, answer) {
    this.waiting.get(id)?.resolve(answer);
    this.waiting.delete(id);
  }

  /**
   * Another worker in the place of one that never came; what was asked of that one is asked again.
   * @param {Worker} gone
   */
  rehire(gone) {
    gone.terminate();
    this.hire();
    for (const [id, { call, args }] of this.waiting) this.worker?.postMessage({ id, call, args });
  }

  /**
   * @param {string} reason
   * @param {boolean} [lost] whether it was the network
   */
  fail(reason, lost = false) {
    if (this.state === "failed") return;
    this.problem = reason;
    this.lost = lost;
    this.worker?.terminate();
    this.change("failed");
    for (const { reject } of this.waiting.values()) reject(new Error(reason));
    this.waiting.clear();
  }

  /** @param {EngineState} state */
  change(state) {
    this.state = state;
    document.documentElement.dataset.live = state;
    for (const listener of this.listeners) listener(state, this.problem);
  }
}
