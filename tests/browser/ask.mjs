// What does the search of a built site answer? Queries as JSON in, addresses and excerpts out; needs no browser.
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { Engine } from "../../web/page/search/engine.mjs";

const [library, folder] = process.argv.slice(2);
const { default: MiniSearch } = await import(pathToFileURL(library).href);

/** @param {string} name @returns {any} */
function told(name) {
  const source = readFileSync(`${folder}/search-${name}.js`, "utf8");
  return JSON.parse(source.slice(source.indexOf("(") + 1, source.lastIndexOf(")")));
}

const engine = new Engine(told("heads"), MiniSearch);
engine.widen(told("whole"));
engine.texts = told("texts").texts;
const answers = JSON.parse(await text(process.stdin)).map((/** @type {string} */ query) => {
  const { absent, results } = engine.ask(query);
  return { absent, results: results.map((result) => Object.assign(result, { words: [...result.words] })) };
});
process.stdout.write(JSON.stringify(answers));
