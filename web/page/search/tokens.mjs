// The tokenizer of the search: the build uses it for the book, and the page for the query.

/** @typedef {import("minisearch").Options<Record<string, any>>} Options */

const SMALL = new Set(
  "a an and are as at be between by can difference do does for from has have how i if in into is it its many me much my need of on or per should so take takes than that the their then there these this to use used versus vs was we what when where which why will with you your"
    .split(" "),
);

const UNIT = /^[kMGTPµ]i?[A-Z]\w{0,4}(?:\/[a-zA-Z]+)?$/;

/**
 * The words of a text: `AllGather`, `all-gather` and `GB/s` as one and as their parts, `1,024` as 1024, `16 GB` also as one, `8x128` as two.
 * @param {string} text
 * @returns {string[]}
 */
export function tokens(text) {
  const found = [];
  let number = "";
  for (const [word] of text.normalize("NFKC").replace(/(?<=\b\d+)x(?=\d+\b)/g, " ").matchAll(/[\p{L}\p{N}]+(?:[-.,/_·][\p{L}\p{N}]+)*/gu)) {
    if (number && UNIT.test(word)) found.push(number + word.replace("/", ""));
    number = /^\d[\d,.]*$/.test(word) ? word.replaceAll(",", "") : "";
    if (number) found.push(number);
    else {
      const parts = word.split(/[-.,/_·]/), humps = parts.flatMap((part) => part.split(/(?<=\p{Ll}\p{Ll})(?=\p{Lu}\p{Ll})/u));
      found.push(...new Set([parts.join(""), ...[...parts, ...humps].filter((part) => part.length > 1)]));
    }
  }
  return found;
}

/**
 * A word as it is looked up, without its ending; null for a stop word.
 * @param {string} word
 * @returns {string | null}
 */
export function term(word) {
  const low = word.toLowerCase();
  if (SMALL.has(low) || (low.length === 1 && !/[\p{L}\d]/u.test(low))) return null;
  if (/\d/.test(low) || low.length < 4) return low;
  const bare = low.replace(/(?<!s)s$/, "").replace(/(?<=.{4})(?:ing|ed|er|ic|ism)$|(?<=i[sz])ation$/, "").replace(/(?<=.{3})e$/, "");
  return bare.replace(/(?<=.{2})([^aeiouls])\1$/, "$1");
}

/** The indexed fields of a section: its heading, the terms that it defines, its page's title, its prose, reader questions. */
export const FIELDS = ["title", "terms", "book", "text", "asked"];

/**
 * The options with which an index is built and read.
 * @param {string[]} fields
 * @returns {Options}
 */
export const options = (fields) => ({ fields, tokenize: tokens, processTerm: term });
