// All explorers of a page: each is found, named, told how Python fares, and fitted again when the window changes.
import { all } from "../dom.mjs";
import { Explorer } from "./explorer.mjs";
/** @import { Engine } from "../engine.mjs" */

const RESIZED_MS = 200;

/** @param {Engine} engine */
export function setUpExplorers(engine) {
  const explorers = mount(engine);
  engine.onchange((state, problem) => { for (const explorer of explorers) explorer.status(state, problem); });
  for (const explorer of explorers) explorer.status(engine.state);
  const refit = () => { for (const explorer of explorers) explorer.refit(); };
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
