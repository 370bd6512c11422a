// All explorers of a page: finds and names each, passes on the state of Python, and refits them to the window.
import { all } from "../dom.mjs";
import { addLiveRegion, announce } from "./aloud.mjs";
import { Explorer } from "./explorer.mjs";
import { notLive } from "./status.mjs";
/** @import { Engine } from "../engine.mjs" */

const RESIZED_MS = 200;

/** @param {Engine} engine */
export function setUpExplorers(engine) {
  addLiveRegion();
  const explorers = mount(engine);
  engine.onchange((state, problem) => {
    for (const explorer of explorers) explorer.status(state, problem);
    if (state === "failed") announce(notLive(problem));
    if (state === "live") for (const explorer of explorers) explorer.wake();
  });
  for (const explorer of explorers) explorer.status(engine.state);
  const fit = () => { // measure everything before any change, so that the page is laid out only once
    for (const { view } of explorers) view.loosen();
    const shares = explorers.map(({ view }) => view.share());
    explorers.forEach(({ view }, at) => view.shrink(shares[at]));
  };
  fit();
  const refit = () => {
    fit();
    for (const explorer of explorers) explorer.refit();
  };
  matchMedia("(max-width: 640px)").addEventListener("change", refit);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(refit, RESIZED_MS); });
}

/** @param {Engine} engine */
function mount(engine) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  return all(document, ".explorer[data-explorer]", HTMLElement).map((root) => {
    const key = root.dataset.explorer ?? "", times = (seen.get(key) ?? 0) + 1;
    seen.set(key, times);
    return new Explorer(root, engine, { key, suffix: times > 1 ? `~${times}` : "" });
  });
}
