// Ranks the sections that match a query: MiniSearch finds and scores them by the weights below.
import { places } from "./marks.mjs";
import { FIELDS, options, term, tokens } from "./tokens.mjs";

/** @typedef {{ pages: [string, string, number, string][], sections: [number, string, string, string][], aliases: [string, string][], absent: [string, number][] }} Heads */
/** @typedef {{ page: string, where: string, anchor: string, title: string, excerpt: string, words: Set<string> }} Result */
/** @typedef {{ absent: string, results: Result[] }} Answer */
/** @typedef {{ id: number, score: number, words: Iterable<string> }} Found */

const AT_MOST = 12;
const EXCERPT = 180; // characters
const ASIDE = /^(?:Further reading|What to remember|Summary|What has changed|Exercises|Objectives)/;
const BOOST = { title: 4, terms: 4, book: 1.5, text: 2, asked: 4 };
const WEIGHTS = { prefix: 0.2, fuzzy: 0.1 };
const ALL = 3; // exponent of the fraction of the words that a section contains
const ALIAS = 0.5; // weight of a result that is found by an alias
const TAUGHT = 3; // factor for a section whose heading or term is the query
const ASKED = 20; // factor for a section that web/asked.csv lists for this query

/** Whether to search by prefix: only the last word may be incomplete. @param {string} word @param {number} at @param {string[]} all */
const prefix = (word, at, all) => at === all.length - 1 && word.length > 1 && !/\d/.test(word);

/** Tolerated typing errors: one in five letters. @param {string} word */
const fuzzy = (word) => (word.length > 4 && !/\d/.test(word) ? 0.2 : false);

/** The words of a text as they are looked up, in order: `latency-hiding` is two. @param {string} text */
const looked = (text) => tokens(text.replace(/-|(?<=\w{3})\/(?=\w{3})/g, " ")).map(term).filter((word) => word !== null).join(" ");

export class Engine {
  /**
   * @param {Heads} heads
   * @param {typeof import("minisearch").default} MiniSearch
   */
  constructor(heads, MiniSearch) {
    this.heads = heads;
    this.MiniSearch = MiniSearch;
    /** @type {string[]} */
    this.texts = [];
    this.aliases = heads.aliases.flatMap(([one, other]) => [[looked(one), looked(other)], [looked(other), looked(one)]]);
    /** @type {Set<string>[]} */
    this.asked = [];
    this.taught = heads.sections.map(([, , title, terms]) => new Set([title, ...terms.split(" / ")].map(looked)));
    this.index = new MiniSearch(options(FIELDS.slice(0, 3)));
    this.index.addAll(heads.sections.map(([page, , title, terms], id) => ({ id, title, terms, book: heads.pages[page][1] })));
  }

  /**
   * Add the full-text index, and the questions that sections answer.
   * @param {{ index: any, asked: string[] }} whole
   */
  widen({ index, asked }) {
    this.index = this.MiniSearch.loadJS(index, options(FIELDS));
    this.asked = asked.map((questions) => new Set(questions.split(" / ").map(looked)));
  }

  /**
   * The sections that have the words, or the same in other words: "remat" is rematerialization.
   * @param {string} query
   * @returns {Answer}
   */
  ask(query) {
    const asked = looked(query);
    /** @type {Map<number, Found>} */
    const best = new Map();
    for (const found of this.variants(asked).flatMap(([text, weight]) => this.search(text, weight))) {
      if (found.score > (best.get(found.id)?.score ?? 0)) best.set(found.id, found);
    }
    const sorted = [...best.values()].toSorted((one, other) => other.score - one.score);
    const [absent, near] = this.heads.absent.find(([word]) => ` ${asked} `.includes(` ${looked(word)} `)) ?? ["", -1];
    const rest = looked(absent) === asked ? [] : sorted.filter(({ id }) => id !== near);
    const shown = absent ? [{ id: near, score: 0, words: asked.split(" ") }, ...rest] : sorted;
    return { absent, results: shown.slice(0, AT_MOST).map((found) => this.result(found)) };
  }

  /** The query and its aliases, with their weights. @param {string} asked @returns {[string, number][]} */
  variants(asked) {
    const others = this.aliases.filter(([one]) => ` ${asked} `.includes(` ${one} `));
    return [[asked, 1], ...others.map(([one, other]) => /** @type {[string, number]} */ ([` ${asked} `.replace(` ${one} `, ` ${other} `).trim(), ALIAS]))];
  }

  /**
   * The sections that contain the words, those with more of them first.
   * @param {string} text
   * @param {number} weight
   * @returns {Found[]}
   */
  search(text, weight) {
    const boostDocument = (/** @type {number} */ id) => weight * this.weight(id, text);
    const asked = { boost: BOOST, weights: WEIGHTS, prefix, fuzzy, boostDocument, tokenize: (/** @type {string} */ words) => words.split(" "), processTerm: (/** @type {string} */ word) => word };
    const count = new Set(text.split(" ")).size;
    return this.index.search(text, asked).map(({ id, score, queryTerms, terms }) => ({ id, score: score * (queryTerms.length / count) ** ALL, words: terms }));
  }

  /**
   * The weight of a section: that of its page from the build, lower outside the main text, higher for an exact match.
   * @param {number} id
   * @param {string} text
   */
  weight(id, text) {
    const [page, , title] = this.heads.sections[id];
    const named = this.asked[id]?.has(text) ? ASKED : this.taught[id].has(text) ? TAUGHT : 1;
    return this.heads.pages[page][2] * named * (ASIDE.test(title) ? 0.3 : 1);
  }

  /** @param {Found} found @returns {Result} */
  result({ id, words }) {
    const [page, anchor, title] = this.heads.sections[id];
    const [address, book, , chapter] = this.heads.pages[page];
    const where = [chapter, book].filter((name) => name && name !== title).join(" › ");
    const told = new Set(words);
    return { page: address, where, anchor, title, words: told, excerpt: excerpt(this.texts[id] ?? "", told) };
  }
}

/**
 * The excerpt of a text that contains the most words.
 * @param {string} text
 * @param {Set<string>} words
 */
export function excerpt(text, words) {
  const found = places(text, words);
  let best = 0, most = 0;
  for (const [start] of found) {
    const from = start < EXCERPT / 2 ? 0 : start - EXCERPT / 4;
    const had = new Set(found.filter(([at, end]) => at >= from && end <= from + EXCERPT).map(([, , word]) => word)).size;
    if (had > most) [best, most] = [from, had];
  }
  const from = best && text.indexOf(" ", best) + 1;
  const cut = text.length <= from + EXCERPT ? text.length : text.lastIndexOf(" ", from + EXCERPT);
  return `${from ? "… " : ""}${text.slice(from, cut)}${cut < text.length ? " …" : ""}`;
}
