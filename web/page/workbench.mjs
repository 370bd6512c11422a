// The workbench: set-ups are asked of Python panel by panel, an answer that nobody waits for any more is dropped.
import { all, need } from "./dom.mjs";
import { Engine } from "./engine.mjs";
import { save } from "./save.mjs";
import { startBeside } from "./start.mjs";
import { words } from "./words.mjs";
import { saved } from "./workbench/notebook.mjs";
import { Queue } from "./workbench/queue.mjs";
import { Setup } from "./workbench/setup.mjs";
import { showDifferences, showPanel } from "./workbench/shown.mjs";
/** @import { Panel } from "./workbench/shown.mjs" */

const REST_MS = 300; // after the last key
const SLOW_MS = 1000; // then the status says how long it has taken
const BUILT = "Computed when the book was built: change anything, and it is computed here.";

const root = need(document, ".workbench", HTMLElement);
const status = need(root, ".workbench-status", HTMLElement);
const engine = new Engine();
const queue = new Queue(engine, JSON.parse(need(root, ".workbench-known", HTMLTemplateElement).content.textContent ?? ""));
const panels = all(root, ".workbench-panel", HTMLElement);
const setups = [new Setup(need(root, ".workbench-setup", HTMLFormElement))];

/** @param {string} text */
const say = (text) => { status.textContent = text; };

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
const soon = () => { clearTimeout(timer); timer = setTimeout(compute, REST_MS); };

async function compute() {
  const round = queue.begin(), from = performance.now();
  const clock = setInterval(() => {
    const took = performance.now() - from;
    if (took > SLOW_MS) say(engine.state === "live" ? `Searching, ${Math.round(took / 1000)} s ...` : "Starting Python ...");
  }, 250);
  root.classList.add("workbench-stale");
  root.dataset.round = String(round);
  for (const setup of setups) setup.clear();
  history.replaceState(null, "", address());
  try {
    await tell();
    for (const panel of panels) await fill(panel);
    await differ();
    root.classList.remove("workbench-stale");
    if (setups.some((one) => one.refused)) say("What is not read is said under its field.");
    else say(engine.state === "asleep" ? BUILT : "Computed here.");
  } catch (problem) {
    if (queue.current(round)) say(`Not computed: ${words(problem)}.`);
  } finally { clearInterval(clock); }
}

async function tell() {
  const told = await Promise.all(setups.map((one) => queue.ask({ ask: "lines", setups: [one.values()] })));
  need(root, ".workbench-repeat pre", HTMLElement).textContent =
    told.map(({ lines, error }) => (error ? error : lines.join("\n"))).join("\n\n");
}

/** @param {HTMLElement} panel */
async function fill(panel) {
  /** @type {Panel[]} */
  const found = [];
  for (const setup of setups) {
    const answer = await queue.ask({ ask: "panel", panel: panel.dataset.panel, setups: [setup.values()] });
    setup.refuse(answer);
    found.push(answer);
  }
  showPanel(need(panel, ".workbench-shown", HTMLElement), found);
}

async function differ() {
  const place = need(root, ".workbench-differences", HTMLElement);
  const hidden = setups.length < 2 || setups.some((one) => one.refused);
  if (!hidden) {
    const answer = await queue.ask({ ask: "differences", setups: setups.map((one) => one.values()) });
    showDifferences(need(place, ".workbench-shown", HTMLElement), answer);
  }
  place.hidden = hidden;
}

/** @param {HTMLButtonElement} button */
async function flip(button) {
  const list = need(button.parentElement ?? root, ".workbench-flips", HTMLElement);
  list.replaceChildren();
  button.disabled = true;
  try {
    for (const what of (button.dataset.inputs ?? "").split(",")) {
      say(`Searching with another ${what} ...`);
      const answer = await queue.ask({ ask: "flip", command: button.dataset.flip, what, setups: [setups[0].values()] });
      const line = document.createElement("li");
      line.textContent = answer.told ?? answer.error;
      list.append(line);
    }
    say("Computed here.");
  } catch { /* the set-up has changed meanwhile */ }
  button.disabled = false;
}

function address() {
  const told = new URLSearchParams(setups.flatMap((one, at) => one.changed(at ? "b." : "")));
  return `${location.pathname}${location.search}${told.size ? `#${told}` : ""}`;
}

/** A second set-up, as the first one is. */
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
    setups.length === 2 ? "Without the second set-up" : "Compare with a second set-up";
  soon();
}

function follow() {
  const told = new URLSearchParams(location.hash.slice(1));
  if ([...told.keys()].some((name) => name.startsWith("b.")) && setups.length < 2) compare();
  setups.forEach((one, at) => one.follow(told, at ? "b." : ""));
}

const DOES = {
  compare,
  link: async () => {
    try { await navigator.clipboard.writeText(location.href); say("The link is copied."); } catch { say(location.href); }
  },
  json: async () => {
    const found = [];
    for (const one of setups) found.push({ setup: one.values(), ...await queue.ask({ ask: "values", setups: [one.values()] }) });
    save(JSON.stringify(found, null, 2), "application/json", "workbench.json");
  },
  notebook: async () => save(await saved(setups.map((one) => one.values()), queue), "application/x-ipynb+json", "workbench.ipynb"),
  reset: () => {
    if (setups.length === 2) compare();
    setups[0].form.reset();
    soon();
  },
};

for (const button of all(root, "button", HTMLButtonElement)) {
  button.disabled = false;
  const does = DOES[/** @type {keyof typeof DOES} */ (button.dataset.do ?? "")];
  button.addEventListener("click", () => { if (does) does(); else flip(button); });
}
setups[0].form.addEventListener("input", soon);
for (const form of all(root, "form", HTMLFormElement)) form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", () => { if (address() !== location.pathname + location.search + location.hash) { follow(); soon(); } });
engine.onchange((state, problem) => {
  if (state === "failed") say(`Not live: ${problem}.`);
  if (state === "live") engine.ask("workbench", JSON.stringify({ ask: "lines", setups: [setups[0].values()] })).catch(() => {}); // loads its wing
});
document.documentElement.dataset.live = engine.state;
follow();
compute();
startBeside([root], engine);
