// The pictures of one explorer: the one that is seen and, laid out behind it in idle time, those that may be next.
import { idle, need } from "../dom.mjs";
import { become } from "./morph.mjs";

const HEAVY = 5000; // letters: of a lighter picture, what differs is drawn as soon as it would be uncovered

export class Stage {
  /** @param {HTMLElement} figure */
  constructor(figure) {
    this.figure = figure; // what is seen
    this.drawn = ""; // its picture, once it is another than the built one
    this.wide = true; // which of its two widths that is
    /** @type {Map<string, HTMLElement>} */
    this.spares = new Map(); // by their pictures
    this.scrolled = 0; // how far a reader moved a strip of panels
    const note = (/** @type {Event} */ { target }) => { if (target instanceof Element && this.figure.contains(target)) this.scrolled = target.scrollLeft; };
    figure.parentElement?.addEventListener("scroll", note, { capture: true, passive: true });
  }

  /**
   * Show a picture: uncover it where it waits.
   * @param {string} picture HTML
   * @param {boolean} wide
   */
  show(picture, wide) {
    if (picture === this.drawn && wide === this.wide) return;
    this.wide = wide;
    const held = this.figure.contains(document.activeElement); // a strip that the keyboard scrolls stays
    if (this.spares.size && !held) this.uncover(this.spares.get(picture) ?? this.prepare(picture, wide));
    else become(slot(this.figure, wide), picture);
    this.spares.delete(picture);
    this.drawn = picture;
    if (this.scrolled) this.scroll(slot(this.figure, wide));
  }

  /** @param {HTMLElement} strip */
  scroll(strip) {
    this.figure.getBoundingClientRect(); // what was hidden until now is seen, and can be scrolled
    strip.scrollLeft = this.scrolled;
  }

  /** @param {HTMLElement} spare */
  uncover(spare) {
    const before = this.figure;
    before.classList.add("ex-spare");
    spare.classList.remove("ex-spare");
    spare.style.minHeight = before.style.minHeight;
    this.figure = spare;
    if (this.drawn) this.spares.set(this.drawn, before); else before.remove();
  }

  /**
   * Lay a picture out behind the one that is seen, when nothing else happens.
   * @param {string} picture HTML
   * @param {boolean} wide
   */
  expect(picture, wide) {
    const { spares } = this;
    if (!spares.size && picture.length < HEAVY) return;
    idle(() => { if (spares === this.spares && picture !== this.drawn && !spares.has(picture)) this.prepare(picture, wide); });
  }

  /**
   * @param {string} picture
   * @param {boolean} wide
   */
  prepare(picture, wide) {
    const spare = /** @type {HTMLElement} */ (this.figure.cloneNode(true));
    spare.classList.add("ex-spare");
    slot(spare, wide).innerHTML = picture;
    spare.style.contentVisibility = "visible";
    this.figure.after(spare);
    slot(spare, wide).firstElementChild?.getBoundingClientRect(); // lays it out, and it stays so when it is hidden
    spare.style.contentVisibility = "";
    this.spares.set(picture, spare);
    return spare;
  }

  /** Let none wait: what they show is not likely any more. */
  clear() {
    for (const spare of this.spares.values()) spare.remove();
    this.spares = new Map();
  }
}

/**
 * @param {HTMLElement} figure
 * @param {boolean} wide
 */
const slot = (figure, wide) => need(figure, wide ? ".ex-wide" : ".ex-narrow", HTMLElement);
