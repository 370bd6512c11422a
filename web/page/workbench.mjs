// The workbench: asks Python about set-ups panel by panel, and drops answers that are no longer needed.
import { all, need } from "./dom.mjs";
import { Engine } from "./engine.mjs";
import { save } from "./save.mjs";
import { startBeside } from "./start.mjs";
import { words } from "./words.mjs";
import { saved } from "./workbench/notebook.mjs";
import { Queue } from "./workbench/queue.mjs";
import { Setup } from "./workbench/setup.mjs";
/** @typedef {{ error?: string, field?: string, html?: string, bar?: string, fit?: { bar?: string } }} Answer */

const REST_MS = 300; // after the last key
const SLOW_MS = 1000; // after which the status shows the elapsed time
const ORDER = ["model", "serve", "plan", "roofline", "cost"]; // immediate answers come before searches

const root = need(document, ".workbench", HTMLElement);
const status = need(root, ".workbench-status", HTMLElement);
const built = status.textContent ?? "";
const engine = new Engine();
const panels = ORDER.flatMap((name) => all(root, `.workbench-panel[data-panel="${name}"]`, HTMLElement));
const queue = new Queue(engine, JSON.parse(need(root, ".workbench-known", HTMLTemplateElement).content.textContent ?? "").map(standing));
const setups = [new Setup(need(root, ".workbench-setup", HTMLFormElement))];

/**
 * An answer from the build of the page, with the HTML that is already on it.
 * @param {[{ panel?: string }, object]} known
 * @returns {[object, unknown]}
 */
function standing([question, answer]) {
  const panel = panels.find((one) => one.dataset.panel === question.panel);
  return [question, panel ? { ...answer, html: need(panel, ".workbench-shown", HTMLElement).innerHTML } : answer];
}

/** @param {string} text */
const say = (text) => { status.textContent = text; };

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Mark the results as outdated as soon as the first key is pressed. */
function soon() {
  clearTimeout(timer);
  old();
  say("Updating.");
  timer = setTimeout(compute, REST_MS);
}

function old() {
  for (const place of [root, ...panels]) place.classList.add("workbench-stale");
  need(root, ".workbench-sums", HTMLElement).classList.remove("workbench-fresh");
}

async function compute() {
  const round = queue.begin(), from = performance.now();
  const clock = setInterval(() => progress(performance.now() - from), 250);
  old();
  root.dataset.round = String(round);
  history.replaceState(null, "", address());
  try {
    if (await read()) {
      await bars();
      for (const panel of panels) await fill(panel);
      await differ();
      root.classList.remove("workbench-stale");
      say(engine.state === "asleep" ? built : "Computed in your browser.");
    } else {
      say("Correct the marked field. The results below are for the previous setup.");
    }
  } catch (problem) {
    if (queue.current(round)) say(`Not computed: ${words(problem)}.`);
  } finally { clearInterval(clock); }
}

/** @param {number} took_ms */
function progress(took_ms) {
  if (took_ms < SLOW_MS) return;
  say(engine.state === "live" ? `Searching, ${Math.round(took_ms / 1000)} s.` : "Starting Python.");
}

/** Show the commands and how fields were read. If one cannot be read, return false and keep the last results. */
async function read() {
  const told = await Promise.all(setups.map((one) => queue.ask({ ask: "lines", setups: [one.values()] })));
  for (const [at, { error, notes = [], errors = [], model = "" }] of told.entries()) {
    const one = setups[at];
    one.clear();
    for (const note of notes) one.note(note);
    for (const problem of error ? [{ error, field: "" }] : errors) one.refuse(problem);
    one.name(model);
  }
  if (setups.some((one) => one.refused)) return false;
  need(root, ".workbench-repeat pre", HTMLElement).textContent = told.map(({ lines }) => lines.join("\n")).join("\n\n");
  return true;
}

/** Show whether the set-ups fit, which is known long before the best plan. */
async function bars() {
  const place = need(root, ".workbench-sums", HTMLElement);
  /** @type {string[]} */
  const told = [];
  for (const one of setups) {
    for (const command of ["plan", "serve"]) told.push((await queue.ask({ ask: "fit", command, setups: [one.values()] })).bar ?? "");
  }
  place.innerHTML = told.join("");
  place.classList.add("workbench-fresh");
}

/** @param {HTMLElement} panel */
async function fill(panel) {
  const name = panel.dataset.panel ?? "";
  /** @type {Answer[]} */
  const found = [];
  for (const setup of setups) found.push(await queue.ask({ ask: "panel", panel: name, setups: [setup.values()] }));
  const shown = need(panel, ".workbench-shown", HTMLElement);
  shown.innerHTML = found.map(({ html, error = "" }) => html ?? `<div class="workbench-column"><p>${plain(error)}</p></div>`).join("");
  for (const [at, { fit, bar = fit?.bar }] of found.entries()) {
    const place = root.querySelectorAll(".workbench-sum")[2 * at + (name === "serve" ? 1 : 0)];
    if (bar && place) place.outerHTML = bar;
  }
  panel.classList.remove("workbench-stale");
}

/** @param {string} text */
const plain = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);

async function differ() {
  const place = need(root, ".workbench-differences", HTMLElement);
  if (setups.length < 2) { place.hidden = true; return; }
  const { html, error = "" } = await queue.ask({ ask: "differences", setups: setups.map((one) => one.values()) });
  need(place, ".workbench-shown", HTMLElement).innerHTML = html ?? `<p>${plain(error)}</p>`;
  place.hidden = false;
}

/**
 * Put a value that an answer proposes into its field.
 * @param {HTMLElement} button
 */
function apply(button) {
  const column = button.closest(".workbench-column");
  const at = column ? [...(column.parentElement?.children ?? [])].indexOf(column) : 0;
  const entry = need(setups[at]?.form ?? root, `[name="${button.dataset.apply}"]`, HTMLInputElement);
  entry.value = button.dataset.value ?? "";
  soon();
}

/** @param {HTMLButtonElement} button */
async function flip(button) {
  const list = need(button.parentElement ?? root, ".workbench-flips", HTMLElement);
  list.replaceChildren();
  button.disabled = true;
  try {
    for (const what of (button.dataset.inputs ?? "").split(",")) {
      say(`Searching with a different value of ${what}.`);
      const answer = await queue.ask({ ask: "flip", command: button.dataset.flip, what, setups: [setups[0].values()] });
      const line = document.createElement("li");
      line.textContent = answer.told ?? answer.error;
      list.append(line);
    }
    say("Computed in your browser.");
  } catch { /* the set-up has changed meanwhile */ }
  button.disabled = false;
}

function address() {
  const told = new URLSearchParams(setups.flatMap((one, at) => one.changed(at ? "b." : "")));
  return `${location.pathname}${location.search}${told.size ? `#${told}` : ""}`;
}

/** Add a second set-up as a copy of the first one. */
function compare() {
  if (setups.length === 2) {
    setups.pop()?.form.remove();
  } else {
    const second = setups[0].copy();
    setups[0].form.after(second.form);
    setups.push(second);
    second.form.addEventListener("input", soon);
  }
  root.classList.toggle("workbench-two", setups.length === 2);
  need(root, '[data-do="compare"]', HTMLElement).textContent =
    setups.length === 2 ? "Remove the second setup" : "Compare with a second setup";
  soon();
}

function follow() {
  const told = new URLSearchParams(location.hash.slice(1));
  if ([...told.keys()].some((name) => name.startsWith("b.")) && setups.length < 2) compare();
  setups.forEach((one, at) => one.follow(told, at ? "b." : ""));
}

/**
 * Save what Python writes, which may have to start first, and say so meanwhile.
 * @param {string} name of the file
 * @param {string} type
 * @param {() => Promise<string>} write
 */
async function keep(name, type, write) {
  const before = status.textContent ?? "", waiting = `Writing ${name}, which takes a few seconds.`;
  say(waiting);
  try {
    save(await write(), type, name);
    if (status.textContent === waiting) say(before); // unless a field was changed meanwhile
  } catch (problem) { say(`Not saved: ${words(problem)}.`); }
}

const DOES = {
  compare,
  link: async () => {
    try { await navigator.clipboard.writeText(location.href); say("Link copied."); } catch { say(location.href); }
  },
  json: () => keep("workbench.json", "application/json", async () => {
    const found = [];
    for (const one of setups) found.push({ setup: one.values(), ...await queue.ask({ ask: "values", setups: [one.values()] }) });
    return JSON.stringify(found, null, 2);
  }),
  notebook: () => keep("workbench.ipynb", "application/x-ipynb+json", () => saved(setups.map((one) => one.values()), queue)),
  reset: () => {
    if (setups.length === 2) compare();
    setups[0].name("");
    setups[0].form.reset();
    soon();
  },
};

root.addEventListener("click", ({ target }) => {
  if (target instanceof HTMLElement && target.dataset.apply) apply(target);
});
for (const button of all(root, "button:not([data-apply])", HTMLButtonElement)) {
  button.disabled = false;
  const does = DOES[/** @type {keyof typeof DOES} */ (button.dataset.do ?? "")];
  button.addEventListener("click", () => { if (does) does(); else flip(button); });
}
setups[0].form.addEventListener("input", soon);
for (const form of all(root, "form", HTMLFormElement)) form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", () => { if (address() !== location.pathname + location.search + location.hash) { follow(); soon(); } });
engine.onchange((state, problem) => {
  if (state === "failed") say(`Not live: ${problem}.`);
  if (state === "live") engine.ask("workbench", JSON.stringify({ ask: "lines", setups: [setups[0].values()] })).catch(() => {}); // loads the workbench wheel
});
document.documentElement.dataset.live = engine.state;
follow();
compute();
startBeside([root], engine);
