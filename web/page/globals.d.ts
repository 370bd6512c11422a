// What the page finds and no type knows of.

/** The keys of the exercises on each page: the build writes it before progress.mjs. */
// eslint-disable-next-line no-var -- only a var is a property of globalThis
declare var bookExercises: Record<string, string[]> | undefined;

interface Navigator {
  /** Not in every browser. */
  readonly connection?: { readonly saveData?: boolean };
}

/** Pyodide as the build puts it beside the worker. */
declare module "*/live/pyodide.mjs" {
  export { loadPyodide } from "pyodide";
}
