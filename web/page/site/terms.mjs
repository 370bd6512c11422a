// Term cards: a definition beside the pointer or the focus.
import { all, find } from "../dom.mjs";

const HOVER_MS = 150, LEAVE_MS = 200;
const GAP_PX = 6, EDGE_PX = 8;

class TermCard {
  /** @param {HTMLElement} definitions */
  constructor(definitions) {
    this.definitions = definitions;
    this.card = Object.assign(document.createElement("div"), { className: "term-card", hidden: true });
    this.card.setAttribute("aria-hidden", "true"); // screen readers get the same words through aria-describedby
    document.body.append(this.card);
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.card.addEventListener("pointerenter", () => clearTimeout(this.timer));
    this.card.addEventListener("pointerleave", () => this.leave());
    addEventListener("keydown", (event) => { if (event.key === "Escape") this.hide(); });
    addEventListener("scroll", () => this.hide(), { passive: true });
  }

  /** @param {HTMLElement} link */
  attach(link) {
    link.addEventListener("pointerenter", (event) => {
      clearTimeout(this.timer);
      if (event.pointerType === "mouse") this.timer = setTimeout(() => this.show(link), HOVER_MS);
    });
    link.addEventListener("pointerleave", () => { clearTimeout(this.timer); this.leave(); });
    link.addEventListener("focus", () => { if (link.matches(":focus-visible")) this.show(link); });
    link.addEventListener("blur", () => this.hide());
  }

  /** @param {HTMLElement} link */
  show(link) {
    const id = CSS.escape(link.getAttribute("aria-describedby") ?? "");
    const meaning = find(this.definitions, `[id="${id}"]`, HTMLElement);
    if (!meaning) return;
    this.card.innerHTML = meaning.innerHTML;
    for (const part of this.card.querySelectorAll("[id]")) part.removeAttribute("id");
    for (const part of all(this.card, "a", HTMLAnchorElement)) part.tabIndex = -1;
    this.card.hidden = false;
    this.place(link.getClientRects()[0]);
  }

  /** Below the term where there is room, above it elsewhere. @param {DOMRect} at */
  place(at) {
    const { offsetWidth, offsetHeight } = this.card;
    const left = Math.min(Math.max(EDGE_PX, at.left), document.documentElement.clientWidth - offsetWidth - EDGE_PX);
    const below = at.bottom + offsetHeight + 2 * GAP_PX < innerHeight;
    this.card.style.left = `${left}px`;
    this.card.style.top = `${below ? at.bottom + GAP_PX : at.top - offsetHeight - GAP_PX}px`;
  }

  leave() { this.timer = setTimeout(() => this.hide(), LEAVE_MS); }

  hide() {
    clearTimeout(this.timer);
    this.card.hidden = true;
  }
}

export function setUpTerms() {
  const definitions = find(document, "#term-definitions", HTMLElement);
  if (!definitions) return;
  const card = new TermCard(definitions);
  for (const link of all(document, "a.term[aria-describedby]", HTMLElement)) card.attach(link);
}
