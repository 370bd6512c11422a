// Marks the entry of the contents whose section is being read.
import { all } from "../dom.mjs";

/** @param {HTMLAnchorElement} link */
const target = (link) => decodeURIComponent(link.hash.slice(1));

export function setUpContents() {
  const links = new Map(all(document, "#pst-page-toc-nav a[href^='#']", HTMLAnchorElement).map((link) => [target(link), link]));
  if (!links.size) return;
  /** @param {HTMLAnchorElement | undefined} here */
  const mark = (here) => {
    for (const link of links.values()) {
      link.classList.toggle("active", link === here);
      if (link === here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  };
  /** @type {Set<Element>} */
  const seen = new Set();
  const sections = [...links.keys()].map((id) => document.getElementById(id)).filter((section) => section !== null);
  const watch = new IntersectionObserver((changes) => {
    for (const change of changes) seen[change.isIntersecting ? "add" : "delete"](change.target);
    const last = sections.findLast((section) => seen.has(section));
    if (last) mark(links.get(last.id));
  }, { rootMargin: "-60px 0px -70% 0px" });
  for (const section of sections) watch.observe(section);
}
