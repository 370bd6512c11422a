// Which sections answer a query? The index is MiniSearch's; what counts for how much is said here.
import MiniSearch from "minisearch";
import { FIELDS, options, term, tokens } from "./tokens.mjs";

/** @typedef {{ pages: [string, string, number][], sections: [number, string, string, string][], aliases: [string, string][] }} Heads */
/** @typedef {{ page: string, book: string, anchor: string, title: string, lead: string }} Result */

const AT_MOST = 12;
const ASIDE = /^(?:Further reading|What to remember|What has changed|Exercises|Objectives)/;
const SCORING = { boost: { title: 5, terms: 4, book: 1.5, text: 1 }, weights: { prefix: 0.4, fuzzy: 0.2 }, maxFuzzy: 2 };
const TAUGHT = 3, PARTLY = 1.7; // times as much counts a section that teaches what is asked, or a part of it

/** The last word may be half typed. @param {string} word @param {number} at @param {string[]} all */
const prefix = (word, at, all) => at === all.length - 1 && word.length > 1 && !/\d/.test(word);
/** Typing errors are looked for where nothing else is found. @param {string} word */
const fuzzy = (word) => (word.length > 3 && !/\d/.test(word) ? 0.25 : false);
const TRIED = [{ prefix }, { prefix, fuzzy }];

/** The words as they are looked up, one after the other: `latency-hiding` is two. @param {string} text */
const looked = (text) => tokens(text.replace(/[-/]/g, " ")).map(term).filter((word) => word !== null).join(" ");

/**
 * The query, and what it says in other words: "kv" is a cache, "remat" is rematerialization.
 * @param {string} query
 * @param {[string, string][]} aliases
 */
function variants(query, aliases) {
  const asked = ` ${looked(query)} `;
  const told = [query];
  for (const pair of aliases) {
    for (const [one, other] of [pair, pair.toReversed()]) {
      const said = ` ${looked(one)} `;
      if (asked.includes(said)) told.push(asked.replace(said, ` ${other} `).trim());
    }
  }
  return told;
}

export class Engine {
  /** @param {Heads} heads */
  constructor(heads) {
    this.heads = heads;
    /** @type {string[]} */
    this.leads = [];
    this.taught = heads.sections.map(([, , title, terms]) => [title, ...terms.split(" / ")].map(looked));
    this.index = new MiniSearch(options(FIELDS.slice(0, 3)));
    this.index.addAll(heads.sections.map(([page, , title, terms], id) => ({ id, title, terms, book: heads.pages[page][1] })));
  }

  /**
   * From now on all prose is looked through.
   * @param {{ index: any, leads: string[] }} whole
   */
  widen(whole) {
    this.index = MiniSearch.loadJS(whole.index, options(FIELDS));
    this.leads = whole.leads;
  }

  /**
   * The sections that have all of the words, in one way of saying it; else nearly; else the most of them.
   * @param {string} query
   * @returns {Result[]}
   */
  ask(query) {
    const queries = variants(query, this.heads.aliases);
    const told = new Set(queries.map(looked)), asked = ` ${looked(query)} `;
    const boostDocument = (/** @type {number} */ id) => this.weight(id, told, asked);
    for (const errors of TRIED) {
      const all = { combineWith: "OR", queries: queries.map((text) => ({ combineWith: "AND", queries: [text] })) };
      const found = this.index.search(/** @type {any} */ (all), { ...SCORING, ...errors, boostDocument });
      if (found.length) return found.slice(0, AT_MOST).map((one) => this.result(one.id));
    }
    const some = this.index.search(query, { ...SCORING, fuzzy, boostDocument });
    some.sort((one, other) => other.score * other.queryTerms.length ** 2 - one.score * one.queryTerms.length ** 2);
    return some.slice(0, AT_MOST).map((one) => this.result(one.id));
  }

  /**
   * A page counts as much as the build says; a section that teaches what is asked, more.
   * @param {number} id
   * @param {Set<string>} told all of it, in every way of saying it
   * @param {string} asked
   */
  weight(id, told, asked) {
    const [page, , title] = this.heads.sections[id];
    const taught = this.taught[id].some((words) => told.has(words)) ? TAUGHT
      : this.taught[id].slice(1).some((words) => words && asked.includes(` ${words} `)) ? PARTLY : 1;
    return this.heads.pages[page][2] * taught * (ASIDE.test(title) ? 0.3 : 1);
  }

  /** @param {number} id @returns {Result} */
  result(id) {
    const [page, anchor, title] = this.heads.sections[id];
    const [address, book] = this.heads.pages[page];
    return { page: address, book, anchor, title, lead: this.leads[id] ?? "" };
  }
}
