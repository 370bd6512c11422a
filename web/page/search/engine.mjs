// Which sections answer a query? The index is MiniSearch's; what counts for how much is said here.
import MiniSearch from "minisearch";
import { nearest } from "./nearest.mjs";
import { FIELDS, options, term, tokens } from "./tokens.mjs";

/** @typedef {{ pages: [string, string, number][], sections: [number, string, string, string][], aliases: [string, string][] }} Heads */
/** @typedef {{ page: string, book: string, anchor: string, title: string, lead: string }} Result */

const AT_MOST = 12;
const ASIDE = /^(?:Further reading|What to remember|What has changed|Exercises|Objectives)/;
const SCORING = { boost: { title: 4, terms: 4, book: 1.5, text: 1, asked: 4 }, weights: { prefix: 0.2, fuzzy: 0 } }; // typing errors are mended before
const ALL = 3; // a section counts by the share that it has of the words, to this power
const OTHERWISE = 0.5; // as much counts what is found by an alias
const BESIDE = 0.8; // a section counts by what its whole page has, to this power
const HEADED = 0.5; // as much of that counts a heading that is what is asked
const TAUGHT = 3; // times as much counts a section that teaches what is asked; one that teaches a part of it, by that part

/** The last word may be half typed. @param {string} word @param {number} at @param {string[]} all */
const prefix = (word, at, all) => at === all.length - 1 && word.length > 1 && !/\d/.test(word);

/** The words as they are looked up, one after the other: `latency-hiding` is two. @param {string} text */
const looked = (text) => tokens(text.replace(/[-/]/g, " ")).map(term).filter((word) => word !== null).join(" ");

/** @param {string} word */
const singular = (word) => word.toLowerCase().replace(/(?<!s)s$/, "");

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

/**
 * What part of one is the other, which stands in it.
 * @param {string} one
 * @param {string} other
 * @param {(words: string) => number} said how much words say
 */
function shared(one, other, said) {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return short && ` ${long} `.includes(` ${short} `) ? said(short) / said(long) : 0;
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
      const low = singular(word);
      if (term(word)) this.words.set(low, (this.words.get(low) ?? 0) + 1);
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
      const found = this.index.search(text, { ...SCORING, prefix });
      const said = this.informing(found);
      const all = said(told);
      for (const { id, score, queryTerms } of found) {
        const had = (score / all) * (said(queryTerms.join(" ")) / all) ** ALL * this.weight(id, told, said) * (told === asked ? 1 : OTHERWISE);
        if (had > (scores.get(id) ?? 0)) scores.set(id, had);
      }
    }
    this.beside(scores);
    const best = [...scores].toSorted(([, one], [, other]) => other - one).slice(0, AT_MOST);
    return best.map(([id]) => this.result(id));
  }

  /**
   * How much words say: the fewer of what was found has one, the more.
   * @param {import("minisearch").SearchResult[]} found
   */
  informing(found) {
    /** @type {Map<string, number>} */
    const often = new Map();
    for (const word of found.flatMap(({ queryTerms }) => queryTerms)) often.set(word, (often.get(word) ?? 0) + 1);
    const said = (/** @type {string} */ word) => Math.log(1 + this.heads.sections.length / (often.get(word) ?? 1));
    return (/** @type {string} */ words) => [...new Set(words.split(" "))].filter(Boolean).reduce((sum, word) => sum + said(word), 0);
  }

  /** A page whose sections have much of it teaches it. @param {Map<number, number>} scores */
  beside(scores) {
    /** @type {Map<number, number>} */
    const pages = new Map();
    for (const [id, score] of scores) {
      const [page] = this.heads.sections[id];
      pages.set(page, (pages.get(page) ?? 0) + score);
    }
    for (const [id, score] of scores) scores.set(id, score * (pages.get(this.heads.sections[id][0]) ?? 0) ** BESIDE);
  }

  /** What was meant: a word that the book has not is the nearest that its headings have. @param {string} query */
  corrected(query) {
    return query.replace(/[\p{L}\p{N}]{4,}/gu, (word, at) => {
      const last = at + word.length === query.length;
      if (/\d/.test(word) || !term(word) || this.index.search(word, { prefix: last }).length) return word;
      return nearest(singular(word), this.words, Math.floor(word.length / 4)) ?? word;
    });
  }

  /**
   * A page counts as much as the build says; a section that teaches what is asked, or a part of it, more.
   * @param {number} id
   * @param {string} told all of it, in one way of saying it
   * @param {(words: string) => number} said
   */
  weight(id, told, said) {
    const [page, , title] = this.heads.sections[id];
    const [heading, ...taught] = this.taught[id];
    const part = Math.max(heading === told ? HEADED : 0, ...taught.map((words) => shared(words, told, said)));
    return this.heads.pages[page][2] * (1 + (TAUGHT - 1) * part) * (ASIDE.test(title) ? 0.3 : 1);
  }

  /** @param {number} id @returns {Result} */
  result(id) {
    const [page, anchor, title] = this.heads.sections[id];
    const [address, book] = this.heads.pages[page];
    return { page: address, book, anchor, title, lead: this.leads[id] ?? "" };
  }
}
