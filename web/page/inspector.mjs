// The inspector: reads a compiled program that a reader drops, opens or pastes, and shows Python's report on it.
import { need } from "./dom.mjs";
import { Engine } from "./engine.mjs";
import { save } from "./save.mjs";
import { startBeside } from "./start.mjs";
import { words } from "./words.mjs";

const MAX_BYTES = 64 * 2 ** 20;
const GZIP = [0x1f, 0x8b];

const root = need(document, ".inspector", HTMLElement);
const form = need(root, "form", HTMLFormElement);
const text = need(form, '[name="text"]', HTMLTextAreaElement);
const file = need(form, '[name="file"]', HTMLInputElement);
const drop = need(form, ".inspector-drop", HTMLElement);
const status = need(root, ".inspector-status", HTMLElement);
const shown = need(root, ".inspector-shown", HTMLElement);
const keep = need(root, '[data-do="save"]', HTMLButtonElement);
const engine = new Engine();
let given = ""; // the text of a file, which may be too long for the text field
let round = 0;

/** @param {string} told */
const say = (told) => { status.textContent = told; };

/** @param {string} name */
const value = (name) => need(form, `[name="${name}"]`, HTMLInputElement).value;

/** @param {File} one */
async function read(one) {
  if (one.size > MAX_BYTES) { say(`Not read: ${one.name} has more than 64 MiB. Inspect it with the command line.`); return; }
  const start = new Uint8Array(await one.slice(0, 2).arrayBuffer());
  const packed = GZIP.every((byte, at) => start[at] === byte);
  try {
    const stream = packed ? one.stream().pipeThrough(new DecompressionStream("gzip")) : one.stream();
    given = await new Response(stream).text();
  } catch (problem) { say(`Not read: ${one.name} is compressed and damaged (${words(problem)}).`); return; }
  text.value = "";
  text.placeholder = `${one.name}, ${given.length.toLocaleString("en-US")} characters`;
  await inspect();
}

async function inspect() {
  const asked = text.value || given, mine = ++round;
  if (!asked.trim()) { say("Drop or paste the text of a compiled program first."); return; }
  const from = performance.now();
  shown.classList.add("inspector-stale");
  const clock = setInterval(() => say(engine.state === "live" ? `Reading, ${Math.round((performance.now() - from) / 1000)} s.` : "Starting Python."), 500);
  try {
    const question = JSON.stringify({ text: asked, machine: value("machine"), mesh: value("mesh") });
    const answer = await engine.ask("inspect", question);
    if (mine !== round) return;
    if (answer.error) { say(`Not inspected: ${answer.error}`); return; }
    shown.innerHTML = answer.html;
    dispatchEvent(new Event("resize")); // its wide figures become focusable, see site/blocks.mjs
    shown.classList.remove("inspector-stale");
    keep.disabled = false;
    say("Inspected in your browser; nothing was sent.");
  } catch (problem) {
    if (mine === round) say(`Not inspected: ${words(problem)}.`);
  } finally {
    clearInterval(clock);
    root.dataset.round = String(mine);
  }
}

form.addEventListener("submit", (event) => { event.preventDefault(); inspect(); });
file.addEventListener("change", () => { if (file.files?.[0]) read(file.files[0]); });
text.addEventListener("input", () => { given = ""; });
for (const name of ["dragenter", "dragover"]) {
  drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("inspector-over"); });
}
drop.addEventListener("dragleave", () => drop.classList.remove("inspector-over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("inspector-over");
  const one = event.dataTransfer?.files[0];
  if (one) read(one);
});
keep.addEventListener("click", () => save(shown.innerHTML, "text/html", "inspect.html"));
for (const button of form.querySelectorAll("button[type=submit]")) if (button instanceof HTMLButtonElement) button.disabled = false;
engine.onchange((state, problem) => { if (state === "failed") say(`Not live: ${problem}.`); });
document.documentElement.dataset.live = engine.state;
startBeside([form], engine);
