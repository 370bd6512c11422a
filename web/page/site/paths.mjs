// Stores the reading path chosen on the cover in this browser, and marks its chapters in the contents.
import { book } from "../book.mjs";
import { all, find } from "../dom.mjs";

/** @typedef {{ name: string, pages: string[] }} Path a reading path, and its pages in order, relative to the site's root */

const KEPT = "scalingbook.path";
const MARKED = ".bd-sidebar-primary a.reference, #pst-primary-sidebar-modal a.reference, .inside-chapter > a";

/** The chosen path, or null if this browser stores none or something invalid. @returns {Path | null} */
function chosen() {
  try {
    const path = JSON.parse(localStorage.getItem(KEPT) ?? "null");
    return typeof path?.name === "string" && Array.isArray(path.pages) ? path : null;
  } catch { return null; }
}

/** @param {Path} path */
function keep(path) {
  try { localStorage.setItem(KEPT, JSON.stringify(path)); } catch { /* a private window: for this page alone */ }
}

/** @param {Path | null} path */
function markChosen(path) {
  const steps = new Map((path?.pages ?? []).map((page, k) => [new URL(String(page), book).pathname, k + 1]));
  for (const link of all(document, MARKED, HTMLAnchorElement)) {
    const step = steps.get(link.pathname);
    if (step) link.dataset.step = String(step); else delete link.dataset.step;
  }
  for (const list of all(document, ".inside", HTMLElement)) list.classList.toggle("on-path", steps.size > 0);
}

/** On a page of the chosen path, let the links to the next and the previous page follow the path. @param {Path | null} path */
function followPath(path) {
  const pages = (path?.pages ?? []).map((page) => new URL(String(page), book).pathname);
  const here = pages.indexOf(location.pathname);
  if (here < 0) return;
  for (const [selector, target] of /** @type {const} */ ([["a.right-next", pages[here + 1]], ["a.left-prev", pages[here - 1]]])) {
    const link = find(document, selector, HTMLAnchorElement), title = link && find(link, ".prev-next-title", HTMLElement);
    const chapter = all(document, ".bd-sidebar-primary a.reference", HTMLAnchorElement).find((one) => one.pathname === target);
    if (!link || !title || !chapter) continue;
    link.href = chapter.href;
    title.textContent = all(chapter, ".toc-number, .toc-title", HTMLElement).map((one) => one.textContent).join(" ");
  }
}

export function setUpPaths() {
  const path = chosen();
  followPath(path);
  for (const radio of all(document, ".paths input", HTMLInputElement)) {
    radio.checked = radio.value === path?.name;
    radio.addEventListener("change", () => {
      const wanted = { name: radio.value, pages: (radio.dataset.pages ?? "").split(" ") };
      keep(wanted);
      markChosen(wanted);
    });
  }
  markChosen(path);
}
