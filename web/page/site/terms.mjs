// Term cards: show the definition of a term, which is embedded in the page.
import { all, find } from "../dom.mjs";
import { card } from "./card.mjs";
import { still } from "./previews.mjs";

export function setUpTerms() {
  const definitions = find(document, "#term-definitions", HTMLElement);
  if (!definitions) return;
  for (const link of all(document, "a.term[aria-describedby]", HTMLAnchorElement)) {
    const id = CSS.escape(link.getAttribute("aria-describedby") ?? "");
    card().attach(link, async () => {
      const meaning = find(definitions, `[id="${id}"]`, HTMLElement);
      return meaning ? [...still(meaning, document.baseURI).childNodes] : [];
    });
  }
}
