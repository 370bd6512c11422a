// What the page finds and no type knows of.

/** The keys on each page, and the key of each number of once: the build writes it before progress.mjs. */
// eslint-disable-next-line no-var -- only a var is a property of globalThis
declare var bookExercises: { pages: Record<string, string[]>; ordinals: Record<string, string> } | undefined;

/** By page what stands elsewhere now, and its address below the root: the build writes it. */
// eslint-disable-next-line no-var
declare var bookMoved: Record<string, Record<string, string>> | undefined;

interface Navigator {
  /** Not in every browser. */
  readonly connection?: { readonly saveData?: boolean };
}

/** Pyodide as the build puts it beside the worker. */
declare module "*/live/pyodide.mjs" {
  export { loadPyodide } from "pyodide";
}
