// Makes the search's index: sections as JSON in, what MiniSearch writes of itself out.
import { pathToFileURL } from "node:url";
import { text } from "node:stream/consumers";
import { FIELDS, options } from "./page/search/tokens.mjs";

const { default: MiniSearch } = await import(pathToFileURL(process.argv[2]).href);
const index = new MiniSearch(options(FIELDS));
index.addAll(JSON.parse(await text(process.stdin)));
process.stdout.write(JSON.stringify(index));
