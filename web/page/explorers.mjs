// Explorers: a control's event goes to the worker, what comes back goes into the page. No arithmetic here.
const FRAME_MS = 700; // how long a step shows while it plays
const KEPT = 512; // pictures of one explorer that are kept: a whole slider, in a few megabytes
const QUICK_MS = 20; // a view that takes longer is not made ahead: the reader's own event must never wait for it
const calm = matchMedia("(prefers-reduced-motion: reduce)");

const mounted = [];

export function setup(engine) {
  const seen = new Map();
  for (const root of document.querySelectorAll(".explorer[data-explorer]")) {
    const times = (seen.get(root.dataset.explorer) ?? 0) + 1;
    seen.set(root.dataset.explorer, times);
    mounted.push(new Mounted(root, engine, times > 1 ? `~${times}` : ""));
  }
  const tell = (state, problem) => { for (const explorer of mounted) explorer.status(state, problem); };
  engine.onchange(tell);
  tell(engine.state);
  const narrow = matchMedia("(max-width: 640px)");
  let timer;
  const refit = () => { for (const explorer of mounted) explorer.refit(); };
  narrow.addEventListener("change", refit);
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(refit, 200); });
}

/** Give an element new content, touching only the nodes that differ: what stays is not laid out or painted again. */
function become(element, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  morphChildren(element, fresh.content);
}

function morphChildren(old, fresh) {
  const before = [...old.childNodes], after = [...fresh.childNodes];
  if (before.length !== after.length) { old.replaceChildren(...after); return; }
  before.forEach((node, place) => morph(node, after[place]));
}

function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName) { old.replaceWith(fresh); return; }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.attributes.length !== fresh.attributes.length) {
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  morphChildren(old, fresh);
}

/** All positions of a slider, from where it is likely to be next, and from where it is, outwards. */
function* positions({ slider, value, next }) {
  const low = Number(slider.min), high = Number(slider.max), step = Number(slider.step) || 1;
  for (let far = 0; far <= high - low; far += step) {
    for (const one of [next + far, next - far, value + far, value - far]) if (one >= low && one <= high) yield one;
  }
}

/** What an input held before any touch. */
const asBuilt = (input) => ([...(input.options ?? [])].find((one) => one.defaultSelected) ?? input.options?.[0])?.value ?? input.defaultValue;

class Mounted {
  constructor(root, engine, suffix) {
    Object.assign(this, { root, engine, key: root.dataset.explorer, address: root.dataset.explorer + suffix });
    this.find = (selector) => root.querySelector(selector);
    this.inputs = [...root.querySelectorAll("input[name], select[name]")];
    this.start = this.state(true);
    this.busy = false;
    this.again = false;
    this.known = new Map();
    this.loosen();
    root.addEventListener("input", (event) => this.touched(event.target));
    for (const touch of ["focusin", "pointerdown"]) root.addEventListener(touch, (event) => this.expect(event.target), { passive: true });
    root.addEventListener("submit", (event) => event.preventDefault());
    this.statusBox = this.addStatus();
    this.enable(".ex-reset", () => this.reset());
    this.enable(".ex-play", () => this.play());
    this.restore();
  }

  enable(selector, act) {
    const button = this.find(selector);
    if (!button) return;
    button.disabled = false;
    button.addEventListener("click", act);
  }

  addStatus() {
    const there = this.find(".ex-status");
    if (there) return there;
    const box = Object.assign(document.createElement("span"), { className: "ex-status" });
    box.setAttribute("role", "status");
    (this.find(".ex-buttons") ?? this.root).append(box);
    return box;
  }

  /** What the controls hold, by parameter name: positions, options, texts; or what they held as built. */
  state(built = false) {
    const state = {};
    for (const input of this.inputs) {
      const value = built ? asBuilt(input) : input.value;
      if (input.type === "checkbox") state[input.name] = built ? input.defaultChecked : input.checked;
      else state[input.name] = input.type === "range" ? Number(value) : value;
    }
    return state;
  }

  set(state) {
    for (const input of this.inputs) {
      if (!(input.name in state)) continue;
      const value = state[input.name];
      if (input.type === "checkbox") input.checked = value === true || value === "true";
      else input.value = value;
    }
  }

  touched(target) {
    if (target.type === "range" && this.playing && target !== this.steps()) this.pause();
    this.paint();
    this.expect(target);
    this.remember();
  }

  /** Paint the newest state; while one is on its way, later ones wait and only the last is asked for. */
  async paint() {
    if (this.busy) { this.again = true; return; }
    const ready = this.known.get(this.question(this.state()));
    if (ready) { this.show(JSON.parse(ready), this.wide()); return; }
    this.busy = true;
    do {
      this.again = false;
      const wide = this.wide();
      try {
        this.show(JSON.parse(await this.fetch(this.state())), wide);
      } catch { /* the status says why */ }
    } while (this.again && this.engine.state !== "failed");
    this.busy = false;
    this.lookAhead();
  }

  // ---- looking ahead: while a reader thinks, the worker makes the pictures that the next move will ask for
  question(state) { return JSON.stringify([state, this.wide()]); }

  async fetch(state) {
    const question = this.question(state), from = performance.now();
    if (this.known.has(question)) return this.known.get(question);
    const painted = await this.engine.text("paint", this.key, JSON.stringify(state), this.wide());
    this.quick = performance.now() - from < QUICK_MS;
    this.known.set(question, painted);
    if (this.known.size > KEPT) this.known.delete(this.known.keys().next().value);
    return painted;
  }

  /** A slider was touched: its next move is likely as long as its last, then comes what is near, in the end all of it. */
  expect(target) {
    if (!this.inputs.includes(target)) return;
    if (target.type === "range") {
      const value = Number(target.value), { slider, value: before } = this.last ?? {};
      this.last = { slider: target, value, next: slider === target ? 2 * value - before : value };
    }
    if (!this.last) return;
    const rest = this.question({ ...this.state(), [this.last.slider.name]: null });
    if (this.made?.rest !== rest) this.made = { rest, positions: new Set() };
    this.likely = positions(this.last);
    this.lookAhead();
  }

  async lookAhead() {
    if (this.looking || this.engine.state !== "live") return;
    this.looking = true;
    try {
      while (!this.busy && this.quick !== false) {
        const { value, done } = this.likely?.next() ?? { done: true };
        if (done) break;
        if (this.made.positions.has(value)) continue;
        this.made.positions.add(value);
        await this.fetch({ ...this.state(), [this.last.slider.name]: value });
      }
    } catch { /* the status says why */ }
    this.looking = false;
  }

  wide() {
    if (this.isWide === undefined) {
      const wide = this.find(".ex-wide");
      this.isWide = !wide || getComputedStyle(wide).display !== "none";
    }
    return this.isWide;
  }

  refit() {
    const before = this.isWide;
    this.isWide = undefined;
    this.loosen();
    if (before !== undefined && before !== this.wide() && this.moved) this.paint();
  }

  show(painted, wide) {
    const error = this.find(".ex-error");
    if (error) {
      error.textContent = painted.error ?? "";
      error.hidden = !painted.error;
    }
    for (const [name, text] of Object.entries(painted.outputs ?? {})) this.output(name, text);
    if (painted.error) {
      this.settle();
      this.painted();
      return;
    }
    this.moved = true;
    become(this.find(wide ? ".ex-wide" : ".ex-narrow"), painted.figure);
    this.text(".ex-verdict", painted.verdict);
    const readouts = this.find(".ex-readouts");
    if (readouts) become(readouts, painted.readouts);
    this.frames(painted.frames);
    this.settle();
    this.painted();
  }

  /**
   * Lay it out now, while the frame has time. The box takes a fixed height that only grows: the page below stays where
   * it is, and the browser need not look at it for every event.
   */
  settle() {
    const figure = this.find(".ex-figure"), { top } = this.root.getBoundingClientRect();
    if (figure.offsetHeight > this.figureHeight) {
      this.figureHeight = figure.offsetHeight;
      figure.style.minHeight = `${this.figureHeight}px`;
    }
    const bottom = Math.max(...[...this.root.children].map((child) => child.getBoundingClientRect().bottom));
    const height = Math.ceil(bottom - top + this.foot);
    if (height <= this.height) return;
    this.height = height;
    this.root.style.height = `${height}px`;
    this.root.classList.add("settled");
  }

  loosen() {
    this.height = this.figureHeight = 0;
    this.root.classList.remove("settled");
    this.root.style.height = this.find(".ex-figure").style.minHeight = "";
    const { paddingBottom, borderBottomWidth } = getComputedStyle(this.root);
    this.foot = parseFloat(paddingBottom) + parseFloat(borderBottomWidth);
  }

  painted() { this.root.dispatchEvent(new CustomEvent("book:painted", { bubbles: true })); }

  text(selector, text) {
    const box = this.find(selector);
    if (box && box.textContent !== text) box.textContent = text;
  }

  output(name, text) {
    const input = this.inputs.find((one) => one.name === name);
    if (!input) return;
    if (input.type === "range") input.setAttribute("aria-valuetext", text);
    const output = input.id && this.find(`output[for="${CSS.escape(input.id)}"]`);
    if (output && output.textContent !== text) output.textContent = text;
  }

  // ---- steps that play
  steps() { return this.stepsInput ??= this.find(".ex-steps input[type=range]"); }

  frames(count) {
    const steps = this.steps();
    if (steps && Number(steps.max) !== count - 1) steps.max = count - 1;
  }

  play() {
    if (this.playing) { this.pause(); return; }
    const steps = this.steps();
    if (calm.matches) { this.step(steps); return; }
    if (Number(steps.value) >= Number(steps.max)) this.goTo(steps, 0);
    this.playing = setInterval(() => { if (!this.step(steps)) this.pause(); }, FRAME_MS);
    this.playButton(true);
    if (Number(steps.value) < Number(steps.max)) this.step(steps);
  }

  step(steps) {
    const last = Number(steps.value) >= Number(steps.max);
    if (last && !calm.matches) return false;
    this.goTo(steps, last ? 0 : Number(steps.value) + 1);
    return Number(steps.value) < Number(steps.max);
  }

  goTo(steps, value) {
    steps.value = value;
    this.touched(steps);
  }

  pause() {
    clearInterval(this.playing);
    this.playing = undefined;
    this.playButton(false);
  }

  playButton(playing) {
    const button = this.find(".ex-play");
    button.setAttribute("aria-pressed", String(playing));
    button.textContent = playing ? "Pause" : "Play";
  }

  reset() {
    if (this.playing) this.pause();
    this.set(this.start);
    this.paint();
    this.remember();
  }

  // ---- the address: one query parameter for each control that is not at its start
  remember() {
    clearTimeout(this.remembering);
    this.remembering = setTimeout(() => {
      const url = new URL(location.href);
      for (const name of Object.keys(this.start)) url.searchParams.delete(`${this.address}.${name}`);
      for (const [name, value] of Object.entries(this.state())) {
        if (value !== this.start[name]) url.searchParams.set(`${this.address}.${name}`, value);
      }
      if (url.href !== location.href) history.replaceState(history.state, "", url);
    }, 250);
  }

  restore() {
    const wanted = {};
    for (const [name, value] of new URLSearchParams(location.search)) {
      const control = name.startsWith(`${this.address}.`) && name.slice(this.address.length + 1);
      if (control && control in this.start) wanted[control] = value;
    }
    const touched = JSON.stringify(this.state()) !== JSON.stringify(this.start); // before this script ran
    if (!Object.keys(wanted).length && !touched) return;
    const steps = this.steps();
    if (steps && steps.name in wanted) steps.max = Math.max(Number(steps.max), Number(wanted[steps.name]) || 0);
    this.set(wanted);
    this.paint();
  }

  status(state, problem) {
    this.root.dataset.live = state;
    const box = this.statusBox;
    const words = { asleep: "", starting: "starting…", live: "live" };
    box.dataset.state = state;
    box.textContent = words[state] ?? `Not live: ${problem}. What you see is the starting view.`;
  }
}
