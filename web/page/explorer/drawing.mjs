// A figure as one SVG file: its visible part, with the colors that it has on this page.
import { all } from "../dom.mjs";

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {HTMLElement} figure
 * @param {string} title
 */
export function drawing(figure, title) {
  const seen = all(figure, "svg", SVGSVGElement).filter((one) => one.getClientRects().length);
  const boxes = seen.map((one) => one.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left)), top = Math.min(...boxes.map((box) => box.top));
  const wide = Math.ceil(Math.max(...boxes.map((box) => box.right)) - left), high = Math.ceil(Math.max(...boxes.map((box) => box.bottom)) - top);
  const style = getComputedStyle(figure), whole = element("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, color: style.color });
  const named = element("title", {});
  named.textContent = title;
  whole.append(named, element("rect", { width: wide, height: high, fill: "var(--ex-bg,#fff)" }));
  seen.forEach((one, at) => {
    const copy = one.cloneNode(true), { x, y, width, height } = boxes[at];
    if (!(copy instanceof SVGSVGElement)) return;
    place(copy, { x: x - left, y: y - top, width, height });
    copy.removeAttribute("class");
    whole.append(copy);
  });
  const text = new XMLSerializer().serializeToString(whole);
  return text.replace(/var\((--[\w-]+)(?:,([^()]*))?\)/g, (_, name, other) => style.getPropertyValue(name).trim() || other || "none");
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 */
function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  place(made, attributes);
  return made;
}

/**
 * @param {Element} one
 * @param {Record<string, string | number>} attributes
 */
function place(one, attributes) {
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, String(value));
}
