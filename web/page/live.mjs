// What computes on a page: one Python worker for its explorers and answer boxes, started on touch or when idle.
import * as answers from "./answers.mjs";
import * as explorers from "./explorers.mjs";

const PATIENCE_MS = 90_000;
let worker, problem, nextId = 0;

const waiting = new Map();
const listeners = new Set();

export const engine = {
  state: "asleep", // asleep, starting, live, failed
  get problem() { return problem; },
  onchange(listener) { listeners.add(listener); },

  /** What the worker answers, as the text it sends; before it is live the question waits, and none is lost. */
  text(call, ...args) {
    engine.start();
    if (engine.state === "failed") return Promise.reject(new Error(problem));
    return new Promise((resolve, reject) => {
      waiting.set(++nextId, { resolve, reject });
      worker.postMessage({ id: nextId, call, args });
    });
  },

  async ask(call, ...args) { return JSON.parse(await engine.text(call, ...args)); },

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
      if (data.ready) { clearTimeout(timer); performance.mark("book:live"); skipUnseen(); change("live"); }
      else if (data.failed) fail(data.failed);
      else answer(data);
    };
  },
};

/** What is out of sight is skipped, at the height it has: an event then costs what its own screen costs. */
function skipUnseen() {
  const sections = [...document.querySelectorAll("article > section > section")];
  const heights = sections.map((section) => section.offsetHeight);
  sections.forEach((section, at) => { section.style.containIntrinsicHeight = `auto ${heights[at]}px`; });
  document.documentElement.classList.add("skips-unseen");
}

function answer({ id, answer: text }) {
  waiting.get(id).resolve(text);
  waiting.delete(id);
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
