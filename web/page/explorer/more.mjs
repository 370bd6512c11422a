// The menu of an explorer: a link to its state, its figure, its numbers, and full screen.
import { find, need } from "../dom.mjs";
import { save } from "../save.mjs";
import { announce } from "./aloud.mjs";
import { drawing } from "./drawing.mjs";
/** @import { Explorer } from "./explorer.mjs" */

const SAID_MS = 1600; // how long a button shows its confirmation

/** @typedef {() => string | Promise<string>} Act what a button does; it returns the confirmation to show */

/** @param {Explorer} explorer @returns {Record<string, Act>} */
function offers(explorer) {
  const { root, view, pictures, controls, engine } = explorer, name = root.id.replace(/^ex-/, "");
  /** @type {Record<string, Act>} */
  const all = {
    "Copy link": async () => {
      const link = explorer.address.link(root.id);
      history.replaceState(history.state, "", link); // if copying fails, the address still has the link
      try { await navigator.clipboard.writeText(link); } catch { return "The link is in the address bar"; }
      return "Copied";
    },
    "Copy embed code": async () => {
      await navigator.clipboard.writeText(explorer.address.frame(need(root, ".ex-title", HTMLElement).textContent ?? name));
      return "Copied";
    },
    "Save figure (SVG)": () => {
      save(drawing(view.figure, need(root, ".ex-title", HTMLElement).textContent ?? name), "image/svg+xml", `${name}.svg`);
      return "Saved";
    },
    "Save numbers (CSV)": async () => {
      const { csv, error } = await engine.ask("table", pictures.key, JSON.stringify(controls.state()));
      if (error) return error;
      save(csv, "text/csv", `${name}.csv`);
      return "Saved";
    },
  };
  if (document.fullscreenEnabled) {
    all["Full screen"] = async () => {
      await (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen());
      return "";
    };
  }
  return all;
}

/**
 * @param {string} name
 * @param {Act} act
 */
function button(name, act) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  made.addEventListener("click", async () => {
    let said = "";
    try { said = await act(); } catch (problem) { said = problem instanceof Error ? problem.message : String(problem); }
    if (!said) return;
    announce(said);
    made.textContent = said;
    setTimeout(() => { made.textContent = name; }, SAID_MS);
  });
  return made;
}

/**
 * Give an explorer its menu; it closes with Escape, and when the focus moves elsewhere.
 * @param {Explorer} explorer
 */
export function addMore(explorer) {
  const place = find(explorer.root, ".ex-buttons", HTMLElement);
  if (!place) return;
  const more = Object.assign(document.createElement("details"), { className: "ex-more" });
  const summary = Object.assign(document.createElement("summary"), { textContent: "⋯", title: "Link, figure, numbers" });
  summary.setAttribute("aria-label", "More of this explorer: link, figure, numbers");
  const list = document.createElement("div");
  list.append(...Object.entries(offers(explorer)).map(([name, act]) => button(name, act)));
  more.append(summary, list);
  place.append(more);
  more.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !more.open) return;
    more.open = false;
    summary.focus();
  });
  document.addEventListener("pointerdown", ({ target }) => { if (target instanceof Node && !more.contains(target)) more.open = false; });
  more.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !more.contains(relatedTarget)) more.open = false;
  });
}
