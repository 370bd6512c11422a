// Answers from the page's own module: for each file its entries added to what was held, or why it is refused.
import { text } from "node:stream/consumers";
import { entries, imported } from "../../web/page/kept.mjs";

const tried = JSON.parse(await text(process.stdin));
const told = tried.map(async ({ file, held }) => {
  try {
    return { progress: entries(await imported(new Blob([file])), held) };
  } catch (problem) { return { refused: String(problem.message) }; }
});
process.stdout.write(JSON.stringify(await Promise.all(told)));
