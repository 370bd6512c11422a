// Finds the words of a query's result in a text, so that they can be marked.
import { term, tokens } from "./tokens.mjs";

/**
 * The start, end and stem of every occurrence of the words in a text.
 * @param {string} text
 * @param {Set<string>} words without their endings
 * @returns {[number, number, string][]}
 */
export function places(text, words) {
  /** @type {[number, number, string][]} */
  const found = [];
  for (const { 0: word, index } of text.matchAll(/[\p{L}\p{N}]+(?:[-.,/_·][\p{L}\p{N}]+)*/gu)) {
    const had = tokens(word).map(term).find((one) => one !== null && words.has(one));
    if (had) found.push([index, index + word.length, had]);
  }
  return found;
}

/**
 * A text with these words marked.
 * @param {string} text
 * @param {Set<string>} words
 * @returns {(string | HTMLElement)[]}
 */
export function marked(text, words) {
  const parts = [];
  let end = 0;
  for (const [from, to] of places(text, words)) {
    parts.push(text.slice(end, from), Object.assign(document.createElement("mark"), { textContent: text.slice(from, to) }));
    end = to;
  }
  return [...parts, text.slice(end)];
}
