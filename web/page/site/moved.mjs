// An old address leads on: what this page no longer has is looked up in a table that is loaded only then.
import { find } from "../dom.mjs";

const book = new URL(document.documentElement.dataset.content_root || "./", location.href);

/** What the address asks for and the page does not have: an anchor, or explorers behind a question mark. */
function missing() {
  const anchor = location.hash.slice(1);
  const explorers = [...new URLSearchParams(location.search).keys()]
    .filter((key) => /^\w+\.\w+\.\w+$/.test(key)).map((key) => key.slice(0, key.lastIndexOf(".")));
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
  else {
    const table = document.createElement("script"); // no fetch: it works for a page that was opened from a file, too
    table.src = new URL("_static/moved.js", book).href;
    table.addEventListener("load", () => leadOn(asked));
    document.head.append(table);
  }
}

export function setUpMoved() {
  addEventListener("hashchange", look);
  look();
}
