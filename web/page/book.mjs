// The book's root address, and a loader of its classic scripts.

export const book = new URL(document.documentElement.dataset.content_root || "./", document.baseURI);

/**
 * Load a script of the site and return its element: unlike fetch, this works for a page opened from a file, too.
 * @param {string} name
 */
export function loadScript(name) {
  const script = document.createElement("script");
  script.src = new URL(`_static/${name}`, book).href;
  document.head.append(script);
  return script;
}
