// Before the first paint, so that a dark page never flashes white.
(() => {
  let mode = "auto";
  try { mode = localStorage.getItem("mode") || mode; } catch {} // a private window keeps nothing
  const dark = mode === "dark" || (mode !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const said = document.documentElement.dataset;
  Object.assign(said, { mode, theme: dark ? "dark" : "light" });
  let before = said.theme; // paper is light
  addEventListener("beforeprint", () => { before = said.theme; said.theme = "light"; });
  addEventListener("afterprint", () => { said.theme = before; });
})();

// And so that an answer never shows for a moment: what waits for a guess is hidden as the page arrives.
(() => {
  /** @type {Record<string, { guess?: string } | undefined>} */
  let kept = {};
  let asks = location.protocol !== "file:"; // from a file no script could show an answer again
  try {
    asks &&= localStorage.getItem("scalingbook.asks") !== "no";
    kept = JSON.parse(localStorage.getItem("scalingbook.progress") ?? "null") ?? {};
  } catch {} // a private window keeps nothing
  document.documentElement.dataset.answers = asks ? "hidden" : "shown";
  const page = location.pathname.replace(/^.*\/|\.html$/g, "");
  /** @type {Map<string, number>} */
  const counted = new Map();
  let waits = false; // whether the answer of the last form does

  /** Whether the page was opened at the section of a form, as a link or a search opens it. @param {HTMLElement} form */
  function arrived(form) {
    const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    const section = target?.closest("article section section");
    return Boolean(section?.contains(form));
  }

  /** A guess is named by its section, and which of that section's it is. @param {HTMLElement} form */
  function meet(form) {
    const section = form.closest("section")?.id ?? page, count = (counted.get(section) ?? 0) + 1;
    counted.set(section, count);
    const key = `guess.${section}-${count}`, said = kept[key];
    form.dataset.guess = key;
    waits = asks && !said && !arrived(form);
    form.hidden = !waits && !said?.guess;
  }

  const watch = new MutationObserver((changes) => {
    for (const node of changes.flatMap((change) => [...change.addedNodes])) {
      if (!(node instanceof HTMLElement)) continue;
      if (node.matches("form.guess")) meet(node);
      else if (waits && node.matches(".answer, .answer-output")) node.setAttribute("hidden", "until-found");
    }
  });
  watch.observe(document.documentElement, { childList: true, subtree: true });
  addEventListener("DOMContentLoaded", () => watch.disconnect());
})();
