// The page's furniture: color mode, search, sidebars, contents, copy buttons, term cards. No arithmetic, no framework.
import { all } from "./dom.mjs";
import { setUpCopying, setUpFolding, setUpScrolling } from "./site/blocks.mjs";
import { setUpColorMode } from "./site/color-mode.mjs";
import { setUpContents } from "./site/contents.mjs";
import { setUpSearch, setUpSidebar } from "./site/dialogs.mjs";
import { setUpMoved } from "./site/moved.mjs";
import { setUpPaths } from "./site/paths.mjs";
import { setUpTerms } from "./site/terms.mjs";
import { words } from "./words.mjs";

const here = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : location.href;

/** @param {string} name */
const load = (name) => import(new URL(name, here).href);

/** @param {unknown} problem */
function notLive(problem) {
  const reason = location.protocol === "file:"
    ? "this page was opened as a file, and browsers start no programs from files; serve the folder instead (make book)"
    : words(problem);
  for (const box of all(document, ".explorer .ex-error, .answer-result", HTMLElement)) {
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
setUpTerms();
setUpMoved();
setUpPaths();
load("progress.mjs").catch(() => {}); // a page opened from a file: nothing is stored
if (document.querySelector(".explorer, .answer-box")) load("live.mjs").catch(notLive);
