// The page's Python: one worker, started once. A question that comes before it is live waits, and none is lost.
import { words } from "./words.mjs";

const PATIENCE_MS = 90_000;

/** @typedef {"asleep" | "starting" | "live" | "failed"} EngineState */
/** @typedef {(state: EngineState, problem?: string) => void} Listener */
/** @typedef {{ resolve: (answer: string) => void, reject: (problem: Error) => void }} Question */

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

  /** @param {Listener} listener */
  onchange(listener) { this.listeners.add(listener); }

  /**
   * What the worker answers, as the text it sends.
   * @param {"paint" | "judge" | "hint"} call
   * @param {...unknown} args
   * @returns {Promise<string>}
   */
  text(call, ...args) {
    this.start();
    if (this.state === "failed") return Promise.reject(new Error(this.problem));
    return new Promise((resolve, reject) => {
      this.waiting.set(++this.nextId, { resolve, reject });
      this.worker?.postMessage({ id: this.nextId, call, args });
    });
  }

  /**
   * The same, read as JSON.
   * @param {"paint" | "judge" | "hint"} call
   * @param {...unknown} args
   */
  async ask(call, ...args) { return JSON.parse(await this.text(call, ...args)); }

  start() {
    if (this.state !== "asleep") return;
    this.change("starting");
    performance.mark("book:starting");
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
      this.fail(event.message || "the worker's script could not be loaded");
    });
    worker.addEventListener("message", ({ data }) => {
      if (data.ready) {
        clearTimeout(timer);
        performance.mark("book:live");
        this.change("live");
      } else if (data.failed) this.fail(data.failed);
      else this.answer(data.id, data.answer);
    });
  }

  /**
   * @param {number} id
   * @param {string} text
   */
  answer(id, text) {
    this.waiting.get(id)?.resolve(text);
    this.waiting.delete(id);
  }

  /** @param {string} reason */
  fail(reason) {
    if (this.state === "failed") return;
    this.problem = reason;
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
