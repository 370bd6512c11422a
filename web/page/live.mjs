// What computes on a page: one Python worker for its explorers and answer boxes, started on touch or when idle.
import * as answers from "./answers.mjs";
import * as explorers from "./explorers.mjs";

const PATIENCE_MS = 90_000;
let worker, problem, nextId = 0;

// Where the host isolates the page (web/serve.py does), answers also come through shared memory and are painted in the
// frame that is about to be drawn. Elsewhere they come as messages, which browsers put off until after that frame.
const shared = globalThis.crossOriginIsolated ? new SharedArrayBuffer(8 + 2 ** 20) : null;
const SPIN_MS = 6; // how long an event may wait for an answer that is nearly there
let wanted = 0, polling = false, skip = 0;
const waiting = new Map();
const listeners = new Set();

export const engine = {
  state: "asleep", // asleep, starting, live, failed
  get problem() { return problem; },
  onchange(listener) { listeners.add(listener); },

  /** Ask the worker; before it is live the question waits, and none is lost. */
  ask(call, ...args) {
    engine.start();
    if (engine.state === "failed") return Promise.reject(new Error(problem));
    return new Promise((resolve, reject) => {
      waiting.set(++nextId, { resolve, reject });
      worker.postMessage({ id: nextId, call, args, shared });
      if (shared && call === "paint" && engine.state === "live") expect(nextId);
    });
  },

  start() {
    if (engine.state !== "asleep") return;
    change("starting");
    performance.mark("book:starting");
    try {
      worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    } catch (error) {
      fail(error.message);
      return;
    }
    const timer = setTimeout(() => { if (engine.state === "starting") fail("Python did not start within 90 seconds"); }, PATIENCE_MS);
    worker.onerror = (event) => { event.preventDefault?.(); fail(event.message || "the worker's script could not be loaded"); };
    worker.onmessage = ({ data }) => {
      if (data.ready) { clearTimeout(timer); performance.mark("book:live"); change("live"); }
      else if (data.failed) fail(data.failed);
      else answer(data);
    };
  },
};

function answer({ id, answer: text }) {
  const asked = waiting.get(id);
  waiting.delete(id);
  asked?.resolve(JSON.parse(text)); // else the frame before took it from shared memory
}

/** Wait a little for an answer that is nearly there; else look for it in every frame before that is drawn. */
function expect(id) {
  wanted = id;
  skip = take(id, skip > 0 ? 0 : SPIN_MS) ? 0 : skip > 0 ? skip - 1 : 20; // a slow one is not waited for each time
  if (waiting.has(id) && !polling) { polling = true; requestAnimationFrame(poll); }
}

function poll() {
  polling = waiting.has(wanted) && !take(wanted, 0);
  if (polling) requestAnimationFrame(poll);
}

function take(id, patience) {
  const head = new Int32Array(shared, 0, 2), until = performance.now() + patience;
  while (Atomics.load(head, 0) !== id && performance.now() < until);
  if (Atomics.load(head, 0) !== id) return false;
  answer({ id, answer: new TextDecoder().decode(new Uint8Array(shared, 8, head[1]).slice()) });
  return true;
}

function fail(reason) {
  if (engine.state === "failed") return;
  problem = reason;
  worker?.terminate();
  change("failed");
  for (const { reject } of waiting.values()) reject(new Error(reason));
  waiting.clear();
}

function change(state) {
  engine.state = state;
  document.documentElement.dataset.live = state;
  for (const listener of listeners) listener(state, problem);
}

const boxes = [...document.querySelectorAll(".explorer, .answer-box")];

/** Start when a control is touched ... */
function onTouch() {
  for (const box of boxes) {
    for (const touch of ["pointerdown", "focusin", "keydown"]) box.addEventListener(touch, engine.start, { once: true, passive: true });
  }
  if (boxes.some((box) => box.contains(document.activeElement))) engine.start();
}

/** ... or when one is near and the browser has nothing else to do. */
function whenIdle() {
  if (navigator.connection?.saveData) return;
  const near = new IntersectionObserver((changes) => {
    if (!changes.some((one) => one.isIntersecting)) return;
    near.disconnect();
    (window.requestIdleCallback ?? ((run) => setTimeout(run, 1500)))(() => engine.start(), { timeout: 5000 });
  }, { rootMargin: "50% 0px" });
  for (const box of boxes) near.observe(box);
}

explorers.setup(engine);
answers.setup(engine);
document.documentElement.dataset.live = engine.state;
onTouch();
if (document.readyState === "complete") whenIdle(); else addEventListener("load", whenIdle);
