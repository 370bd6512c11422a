// Which sections answer a query? The index is MiniSearch's; what counts for how much is said here.
import MiniSearch from "minisearch";
import { nearest } from "./nearest.mjs";
import { FIELDS, options, term, tokens } from "./tokens.mjs";

/** @typedef {{ pages: [string, string, number][], sections: [number, string, string, string][], aliases: [string, string][] }} Heads */
/** @typedef {{ page: string, book: string, anchor: string, title: string, lead: string }} Result */

const AT_MOST = 12;
const ASIDE = /^(?:Further reading|What to remember|What has changed|Exercises|Objectives)/;
const SCORING = { boost: { title: 5, terms: 4, book: 1.5, text: 1 }, weights: { prefix: 0.4, fuzzy: 0 } }; // typing errors are mended before
const ALL = 3; // a section counts by the share that it has of the words, to this power
const OTHERWISE = 0.8; // as much counts what is found by an alias
const TAUGHT = 3, PARTLY = 1.7; // times as much counts a section that teaches what is asked, or a part of it

/** The last word may be half typed. @param {string} word @param {number} at @param {string[]} all */
const prefix = (word, at, all) => at === all.length - 1 && word.length > 1 && !/\d/.test(word);

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
    /** @type {Map<string, number>} how often the headings have a word */
    this.words = new Map();
    for (const word of heads.sections.flatMap(([, , title, terms]) => tokens(`${title} ${terms}`))) {
      const bare = term(word);
      if (bare) this.words.set(bare, (this.words.get(bare) ?? 0) + 1);
    }
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
   * The sections that have the words, in one way of saying them: the more of them, the earlier.
   * @param {string} query
   * @returns {Result[]}
   */
  ask(query) {
    const meant = this.corrected(query);
    const asked = looked(meant);
    /** @type {Map<number, number>} */
    const scores = new Map();
    for (const text of variants(meant, this.heads.aliases)) {
      const told = looked(text);
      const boostDocument = (/** @type {number} */ id) => this.weight(id, told, asked) * (told === asked ? 1 : OTHERWISE);
      const words = new Set(tokens(text).map(term).filter(Boolean)).size;
      for (const { id, score, queryTerms } of this.index.search(text, { ...SCORING, prefix, boostDocument })) {
        const had = score * (queryTerms.length / words) ** ALL;
        if (had > (scores.get(id) ?? 0)) scores.set(id, had);
      }
    }
    const best = [...scores].toSorted(([, one], [, other]) => other - one).slice(0, AT_MOST);
    return best.map(([id]) => this.result(id));
  }

  /** What was meant: a word that the book has not is the nearest that its headings have. @param {string} query */
  corrected(query) {
    return query.replace(/[\p{L}\p{N}]{4,}/gu, (word, at) => {
      const last = at + word.length === query.length;
      const bare = /\d/.test(word) ? null : term(word);
      if (!bare || this.index.search(word, { prefix: last }).length) return word;
      return nearest(bare, this.words, Math.floor(word.length / 4)) ?? word;
    });
  }

  /**
   * A page counts as much as the build says; a section that teaches what is asked, more.
   * @param {number} id
   * @param {string} told all of it, in one way of saying it
   * @param {string} asked as it was said
   */
  weight(id, told, asked) {
    const [page, , title] = this.heads.sections[id];
    const taught = this.taught[id].includes(told) ? TAUGHT
      : this.taught[id].slice(1).some((words) => words && ` ${asked} `.includes(` ${words} `)) ? PARTLY : 1;
    return this.heads.pages[page][2] * taught * (ASIDE.test(title) ? 0.3 : 1);
  }

  /** @param {number} id @returns {Result} */
  result(id) {
    const [page, anchor, title] = this.heads.sections[id];
    const [address, book] = this.heads.pages[page];
    return { page: address, book, anchor, title, lead: this.leads[id] ?? "" };
  }
}
