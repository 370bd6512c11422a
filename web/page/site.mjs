// The page's controls: color mode, search, sidebars, contents, copy buttons, term cards. No arithmetic, no framework.
import { all } from "./dom.mjs";
import { setUpCopying, setUpFolding, setUpScrolling } from "./site/blocks.mjs";
import { setUpColorMode } from "./site/color-mode.mjs";
import { setUpContents } from "./site/contents.mjs";
import { setUpSearch, setUpSidebar } from "./site/dialogs.mjs";
import { setUpFound } from "./site/found.mjs";
import { setUpGlossary } from "./site/glossary.mjs";
import { setUpPaths } from "./site/paths.mjs";
import { setUpPlace } from "./site/place.mjs";
import { setUpPreviews } from "./site/previews.mjs";
import { setUpSideBySide } from "./site/side-by-side.mjs";
import { setUpTerms } from "./site/terms.mjs";
import { setUpVisited } from "./site/visited.mjs";
import { words } from "./words.mjs";

const here = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : location.href;

const RETRY_DELAYS_MS = [1000, 4000]; // before each new request for a script that did not load

/** @param {string} name */
const load = (name) => import(new URL(name, here).href);

/**
 * Load a module, and retry after a failure under another address, because browsers cache a failed import.
 * @param {string} name
 */
async function loadWithRetry(name, attempts = 0) {
  try { return await load(attempts ? `${name}?again=${attempts}` : name); } catch (problem) {
    if (location.protocol === "file:" || attempts === RETRY_DELAYS_MS.length) throw problem;
    await new Promise((done) => { setTimeout(done, RETRY_DELAYS_MS[attempts]); });
    return loadWithRetry(name, attempts + 1);
  }
}

/** @param {unknown} problem */
function notLive(problem) {
  const reason = location.protocol === "file:"
    ? "this page was opened as a file, and browsers do not run programs from files; serve the folder instead (make book)"
    : words(problem);
  for (const box of all(document, ".explorer .ex-error, .answer-result, .workbench-status, .inspector-status", HTMLElement)) {
    box.hidden = false;
    box.dataset.state = "failed";
    box.textContent = `Not live: ${reason}.`;
  }
}

setUpColorMode();
setUpSearch();
setUpSidebar("primary", true);
setUpSidebar("secondary", false);
setUpContents();
setUpCopying();
setUpScrolling();
setUpFolding();
setUpSideBySide();
setUpTerms();
setUpPreviews();
setUpGlossary();
setUpFound();
setUpPaths();
setUpPlace();
setUpVisited();
if (document.querySelector(".admonition.predict")) loadWithRetry("guesses.mjs").catch(() => { for (const one of all(document, "[hidden='until-found']", HTMLElement)) one.hidden = false; });
load("progress.mjs").catch(() => {}); // a page opened from a file: nothing is stored
if (document.querySelector(".save-book") && location.protocol !== "file:") load("whole.mjs").catch(() => {});
if (document.querySelector(".explorer, .answer-box")) loadWithRetry("live.mjs").catch(notLive);
if (document.querySelector(".workbench")) loadWithRetry("workbench.mjs").catch(notLive);
if (document.querySelector(".inspector")) loadWithRetry("inspector.mjs").catch(notLive);
