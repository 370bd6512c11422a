// Renders formulas, one JSON line in ({latex, display}), one JSON line out ({html} or {error}).
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { default: katex } = await import(pathToFileURL(process.argv[2]).href);
const macros = JSON.parse(process.argv[3] ?? "{}");

/** @param {{ latex: string, display: boolean }} question */
function render({ latex, display }) {
  try {
    const options = { displayMode: display, throwOnError: true, strict: "ignore", macros: { ...macros } };
    return { html: katex.renderToString(latex, options) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(render(JSON.parse(line))) + "\n");
}
