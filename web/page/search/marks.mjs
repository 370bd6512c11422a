// Where in a text are the words of a query?
import { term, tokens } from "./tokens.mjs";

/**
 * The places of a text, from and to, where a word of the query stands.
 * @param {string} text
 * @param {string} query
 * @returns {[number, number][]}
 */
export function places(text, query) {
  const asked = new Set(tokens(query).map(term).filter(Boolean));
  /** @type {[number, number][]} */
  const found = [];
  for (const { 0: word, index } of text.matchAll(/[\p{L}\p{N}]+(?:[-.,/_·][\p{L}\p{N}]+)*/gu)) {
    if (tokens(word).some((one) => asked.has(term(one)))) found.push([index, index + word.length]);
  }
  return found;
}

/**
 * A text with these words marked.
 * @param {string} text
 * @param {string} query
 * @returns {(string | HTMLElement)[]}
 */
export function marked(text, query) {
  const parts = [];
  let end = 0;
  for (const [from, to] of places(text, query)) {
    parts.push(text.slice(end, from), Object.assign(document.createElement("mark"), { textContent: text.slice(from, to) }));
    end = to;
  }
  return [...parts, text.slice(end)];
}
