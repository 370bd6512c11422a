// Marks the words of a search in the section that it has opened, without a change to the page.
import { all } from "../dom.mjs";
import { places } from "../search/marks.mjs";

const SHOWN_MS = 8000;

/** @param {Element} section @param {Set<string>} words */
function ranges(section, words) {
  const found = [];
  const walk = document.createTreeWalker(section, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (node.parentElement?.closest(".katex, pre, script")) continue;
    for (const [from, to] of places(node.nodeValue ?? "", words)) {
      const range = document.createRange();
      range.setStart(node, from);
      range.setEnd(node, to);
      found.push(range);
    }
  }
  return found;
}

function show() {
  let words = null;
  try {
    words = sessionStorage.getItem("found");
    sessionStorage.removeItem("found");
  } catch {} // nothing is kept: nothing is marked
  if (!words) return;
  const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  const section = target?.closest("section, dd, dt") ?? document.querySelector("article");
  if (!section) return;
  for (const answer of all(section, "[hidden='until-found']", HTMLElement)) { // a reader who searched for it does not have to guess
    answer.hidden = false;
    answer.dispatchEvent(new Event("beforematch"));
  }
  if (!("highlights" in CSS)) return;
  CSS.highlights.set("found", new Highlight(...ranges(section, new Set(words.split(" ")))));
  setTimeout(() => CSS.highlights.delete("found"), SHOWN_MS);
}

export function setUpFound() {
  addEventListener("hashchange", show);
  show();
}
