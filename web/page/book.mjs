// Where is the book, and how does a page bring a file of it?

export const book = new URL(document.documentElement.dataset.content_root || "./", document.baseURI);

/**
 * A script, not a request: it works for a page that was opened from a file, too.
 * @param {string} name
 */
export function bring(name) {
  const script = document.createElement("script");
  script.src = new URL(`_static/${name}`, book).href;
  document.head.append(script);
  return script;
}
