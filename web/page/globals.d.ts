// What the page finds and no type knows of.

/** How many exercises each chapter has: the build writes it before site.js. */
// eslint-disable-next-line no-var -- only a var is a property of globalThis
declare var bookExercises: Record<string, { page: string; count: number }> | undefined;

interface Navigator {
  /** Not in every browser. */
  readonly connection?: { readonly saveData?: boolean };
}

/** Pyodide as the build puts it beside the worker. */
declare module "*/live/pyodide.mjs" {
  export { loadPyodide } from "pyodide";
}
