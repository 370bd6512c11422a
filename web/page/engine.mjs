// The page's Python: one worker, started once; questions wait until it is ready.
import { words } from "./words.mjs";

const START_TIMEOUT_MS = 90_000;
const RETRY_DELAYS_MS = [1000, 4000]; // before each new worker, if the script of the worker did not load

/** @typedef {"asleep" | "starting" | "live" | "failed"} EngineState */
/** @typedef {"paint" | "place" | "table" | "judge" | "guess" | "hint" | "workbench" | "inspect"} Call */
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
  attempts = 0;
  networkError = false; // whether the network failed, so that a retry may succeed

  constructor() { addEventListener("online", () => { if (this.networkError) this.start(); }); }

  /** @param {Listener} listener */
  onchange(listener) { this.listeners.add(listener); }

  /**
   * The worker's answer, parsed from JSON; rejected if Python failed to start.
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

  /** Start Python once; after a network error, start it again. */
  start() {
    if (this.state !== "asleep" && !(this.state === "failed" && this.networkError)) return;
    this.attempts = 0;
    this.networkError = false;
    this.change("starting");
    performance.mark("book:starting");
    this.spawnWorker();
  }

  spawnWorker() {
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
    }, START_TIMEOUT_MS);
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      const wait = event.message ? undefined : RETRY_DELAYS_MS[this.attempts++]; // the error of a script that did not load has no message
      if (wait !== undefined && this.state === "starting") setTimeout(() => this.respawnWorker(worker), wait);
      else this.fail(event.message || "the worker's script could not be loaded", !event.message);
    });
    worker.addEventListener("message", ({ data }) => {
      if (data.ready) {
        clearTimeout(timer);
        performance.mark("book:live");
        this.change("live");
      } else if (data.failed) this.fail(data.failed, data.networkError);
      else this.resolveAnswer(data.id, data.answer);
    });
  }

  /**
   * @param {number} id
   * @param {string} answer JSON
   */
  resolveAnswer(id, answer) {
    this.waiting.get(id)?.resolve(answer);
    this.waiting.delete(id);
  }

  /**
   * Replace the worker, and send the pending questions to the new one.
   * @param {Worker} former
   */
  respawnWorker(former) {
    former.terminate();
    this.spawnWorker();
    for (const [id, { call, args }] of this.waiting) this.worker?.postMessage({ id, call, args });
  }

  /**
   * @param {string} reason
   * @param {boolean} [networkError] whether the network failed
   */
  fail(reason, networkError = false) {
    if (this.state === "failed") return;
    this.problem = reason;
    this.networkError = networkError;
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
