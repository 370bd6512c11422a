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
