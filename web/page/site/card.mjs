// The page's card: previews the target of a link next to the pointer, the focus or the finger.
const HOVER_MS = 150, LEAVE_MS = 200;
const GAP_PX = 6, EDGE_PX = 8;
const ID = "link-card";

/** @typedef {(link: HTMLAnchorElement) => Promise<Node[]>} Fill the card's content for a link; empty if there is none */

class Card {
  constructor() {
    this.box = Object.assign(document.createElement("div"), { className: "term-card", hidden: true, id: ID, role: "tooltip" });
    document.body.append(this.box);
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** @type {HTMLAnchorElement | null} */
    this.link = null;
    this.box.addEventListener("pointerenter", () => clearTimeout(this.timer));
    this.box.addEventListener("pointerleave", () => this.leave());
    addEventListener("keydown", (event) => { if (event.key === "Escape") this.hide(); });
    addEventListener("scroll", () => this.hide(), { passive: true });
    addEventListener("pointerdown", ({ target }) => {
      if (target instanceof Node && !this.box.contains(target) && !this.link?.contains(target)) this.hide();
    });
  }

  /** @param {HTMLAnchorElement} link @param {Fill} fill */
  attach(link, fill) {
    let finger = false;
    link.addEventListener("pointerdown", (event) => { finger = event.pointerType === "touch"; });
    link.addEventListener("pointerenter", (event) => {
      clearTimeout(this.timer);
      if (event.pointerType === "mouse") this.timer = setTimeout(() => this.show(link, fill), HOVER_MS);
    });
    link.addEventListener("pointerleave", (event) => {
      clearTimeout(this.timer);
      if (event.pointerType === "mouse") this.leave();
    });
    link.addEventListener("focus", () => { if (link.matches(":focus-visible")) this.show(link, fill); });
    link.addEventListener("blur", () => this.hide());
    link.addEventListener("click", (event) => { // a first tap shows the card, and a second one follows the link
      if (!finger || location.protocol === "file:" || this.link === link) return;
      event.preventDefault();
      this.show(link, fill).then((shown) => { if (!shown) location.assign(link.href); });
    });
  }

  /** @param {HTMLAnchorElement} link @param {Fill} fill @returns {Promise<boolean>} whether there was something to show */
  async show(link, fill) {
    clearTimeout(this.timer);
    this.hide();
    this.link = link;
    /** @type {Node[]} */
    let parts = [];
    try { parts = await fill(link); } catch {} // a link alone: no network, or a page that was opened from a file
    if (this.link !== link) return true; // the reader has moved on
    if (!parts.length) { this.link = null; return false; }
    this.box.replaceChildren(...parts);
    this.box.hidden = false;
    if (!link.hasAttribute("aria-describedby")) link.setAttribute("aria-describedby", ID);
    this.place(link.getClientRects()[0]);
    return true;
  }

  /** Place the card below the link if there is room, otherwise above it. @param {DOMRect} at */
  place(at) {
    const { offsetWidth, offsetHeight } = this.box;
    const left = Math.min(Math.max(EDGE_PX, at.left), document.documentElement.clientWidth - offsetWidth - EDGE_PX);
    const below = at.bottom + offsetHeight + 2 * GAP_PX < innerHeight;
    this.box.style.left = `${left}px`;
    this.box.style.top = `${below ? at.bottom + GAP_PX : Math.max(EDGE_PX, at.top - offsetHeight - GAP_PX)}px`;
  }

  leave() { this.timer = setTimeout(() => this.hide(), LEAVE_MS); }

  hide() {
    clearTimeout(this.timer);
    if (this.link?.getAttribute("aria-describedby") === ID) this.link.removeAttribute("aria-describedby");
    this.link = null;
    this.box.hidden = true;
  }
}

/** @type {Card | undefined} */
let made;

/** The page's card. */
export const card = () => { made ??= new Card(); return made; };
