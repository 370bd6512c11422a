// Stores the last page and section read in this browser, and offers them on the cover.
import { find } from "../dom.mjs";
import { book } from "../book.mjs";

const STORE = "scalingbook.place";

/** @typedef {{ address: string, title: string }} Place */

/** @returns {Place | null} */
function storedPlace() {
  try {
    const place = JSON.parse(localStorage.getItem(STORE) ?? "null");
    return typeof place?.address === "string" && /^[\w/]+\.html(#[\w-]*)?$/.test(place.address) ? place : null;
  } catch { return null; }
}

/** The section at the top of the window. */
function readSection() {
  const above = [...document.querySelectorAll("article section[id]")].filter((one) => one.getBoundingClientRect().top < innerHeight / 3);
  return above.at(-1) ?? null;
}

function storePlace() {
  const here = readSection();
  const names = [find(document, "article h1", HTMLElement), here && find(here, "h1, h2, h3, h4", HTMLElement)];
  const titles = names.map((one) => one?.firstChild?.textContent?.trim() ?? "").filter(Boolean);
  const title = [...new Set(titles)].join(": ") || document.title;
  const address = location.pathname.slice(book.pathname.length) + (here ? `#${here.id}` : "");
  try { localStorage.setItem(STORE, JSON.stringify({ address, title })); } catch {} // a private window keeps nothing
}

export function setUpPlace() {
  if (/\/chapters\/\w+\.html$/.test(location.pathname)) addEventListener("pagehide", storePlace);
  const place = storedPlace(), heading = find(document, "article.bd-article > section > h1, article.bd-article h1", HTMLElement);
  if (!place || !heading || !/(?:\/|index\.html)$/.test(location.pathname)) return;
  const link = Object.assign(document.createElement("a"), { href: new URL(place.address, book).href, textContent: `Continue where you left off: ${place.title}` });
  const line = Object.assign(document.createElement("p"), { className: "place" });
  line.append(link);
  heading.after(line);
}
