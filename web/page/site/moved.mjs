// An old address leads on: what this page no longer has is looked up in a table that is loaded only then.
import { book, bring } from "../book.mjs";
import { find } from "../dom.mjs";

/** What the address asks for and the page does not have: an anchor, or explorers behind a question mark. */
function missing() {
  const anchor = location.hash.slice(1);
  const explorers = [...new URLSearchParams(location.search).keys()]
    .flatMap((name) => /^(\w+\.\w+)[.-]\w+$/.exec(name)?.[1] ?? []);
  return [
    ...(anchor && !document.getElementById(anchor) ? [anchor] : []),
    ...explorers.filter((key) => !find(document, `[data-explorer="${key}"]`, Element)).map((key) => `?${key}`),
  ];
}

/** @param {string[]} asked */
function leadOn(asked) {
  const moved = globalThis.bookMoved?.[location.pathname.slice(book.pathname.length)] ?? {};
  const to = asked.map((one) => moved[one]).find(Boolean);
  if (!to) return;
  const target = new URL(to, book);
  target.search = location.search;
  if (!target.hash) target.hash = location.hash;
  location.replace(target);
}

function look() {
  const asked = missing();
  if (!asked.length) return;
  if (globalThis.bookMoved) leadOn(asked);
  else bring("moved.js").addEventListener("load", () => leadOn(asked));
}

export function setUpMoved() {
  addEventListener("hashchange", look);
  look();
}
