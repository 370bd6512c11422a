// Previews the target of a link inside the book. The target's page is fetched on demand, from this site, once.
import { all, find } from "../dom.mjs";
import { card } from "./card.mjs";

const LINKS = "article.bd-article a.reference.internal[href*='#']:not(.term)";
const APART = "nav, .toctree-wrapper, .glossary-find, .inside, .prev-next-area"; // links in these are navigation
const LEFT_OUT = "a.headerlink, button, input, script, .eqno, .difficulty, .fig-wide";
const ENOUGH = 160; // characters of a preview; if the first paragraph is shorter, the second is shown too
const ROWS = 6;

/** @type {Map<string, Promise<Document>>} */
const read = new Map();

/** @param {URL} url */
function pageOf(url) {
  if (url.pathname === location.pathname) return Promise.resolve(document);
  const known = read.get(url.pathname);
  if (known) return known;
  const page = fetch(url.pathname).then(async (answer) => {
    if (!answer.ok) throw new Error(String(answer.status));
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  });
  page.catch(() => read.delete(url.pathname));
  read.set(url.pathname, page);
  return page;
}

/** Prefix ids, which the page may already have. @param {Element} part */
function rename(part) {
  if (part.id) part.id = `card-${part.id}`;
  for (const name of part.getAttributeNames()) {
    const value = part.getAttribute(name) ?? "";
    if (value.includes("url(#")) part.setAttribute(name, value.replaceAll("url(#", "url(#card-"));
  }
  part.removeAttribute("tabindex");
}

/**
 * A copy without anything interactive.
 * @param {Element} part
 * @param {string} base the address of its page
 */
export function still(part, base) {
  const copy = /** @type {HTMLElement} */ (document.importNode(part, true));
  for (const one of copy.querySelectorAll(LEFT_OUT)) one.remove();
  for (const one of [copy, ...copy.querySelectorAll("*")]) rename(one);
  for (const link of all(copy, "a[href]", HTMLAnchorElement)) {
    link.href = new URL(link.getAttribute("href") ?? "", base).href;
    link.tabIndex = -1;
  }
  for (const image of all(copy, "img", HTMLImageElement)) image.src = new URL(image.getAttribute("src") ?? "", base).href;
  return copy;
}

/** A section's title and its beginning. @param {Element} section @returns {Element[]} */
function beginning(section) {
  const title = find(section, "h1, h2, h3, h4", HTMLElement);
  const first = [];
  let letters = 0;
  for (const one of section.querySelectorAll(":scope > :is(p:not(.page-number), div.math)")) {
    if (letters >= ENOUGH) break;
    first.push(one);
    letters += one.textContent?.length ?? 0;
  }
  return title ? [title, ...first] : first;
}

/** The elements of a target that the preview shows. @param {Element} target @returns {Element[]} */
function shown(target) {
  const explorer = target.closest(".explorer"), exercise = target.closest(".exercise");
  if (explorer) return [...explorer.querySelectorAll(".ex-title, .ex-question, .ex-verdict")];
  if (exercise) return [...exercise.querySelectorAll(":scope > .exercise-title, :scope > p:not([class])")].slice(0, 2);
  if (target.matches("figure, table, .math, .citation, dd")) return [target];
  if (target.matches("dt")) return [target, ...(target.nextElementSibling ? [target.nextElementSibling] : [])];
  const section = target.closest("section");
  return section ? beginning(section) : [];
}

/** @param {Element} part @param {string} base */
function fitted(part, base) {
  const copy = still(part, base);
  if (/^H\d$/.test(copy.tagName) || copy.matches(".ex-title")) { // in a card it is not a heading of the page
    const title = document.createElement("p"), strong = document.createElement("strong");
    strong.append(...copy.childNodes);
    title.append(strong);
    return title;
  }
  for (const narrow of all(copy, ".fig-narrow", HTMLElement)) narrow.hidden = false;
  for (const row of [...copy.querySelectorAll("tbody tr")].slice(ROWS)) row.remove();
  return copy;
}

export function setUpPreviews() {
  if (location.protocol === "file:") return; // browsers do not let a file read another one
  for (const link of all(document, LINKS, HTMLAnchorElement)) {
    if (link.closest(APART)) continue;
    card().attach(link, async () => {
      const url = new URL(link.href), page = await pageOf(url);
      const target = page.getElementById(decodeURIComponent(url.hash.slice(1)));
      return target ? shown(target).map((part) => fitted(part, url.href)) : [];
    });
  }
}
