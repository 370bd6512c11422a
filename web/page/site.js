// The page's furniture: color mode, search, sidebars, contents, copy buttons, term cards. No arithmetic, no framework.
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const here = document.currentScript.src;

  // ---- color mode: system, light, dark
  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = {
    get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* private window: not kept */ } },
  };
  function show(mode) {
    root.dataset.mode = mode;
    root.dataset.theme = mode === "auto" ? (system.matches ? "dark" : "light") : mode;
    for (const button of all(".theme-switch-button")) {
      button.title = `Color mode: ${mode === "auto" ? "system" : mode}`;
      button.setAttribute("aria-label", button.title);
    }
  }
  const order = () => (system.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"]);
  function nextMode() {
    const modes = order();
    const mode = modes[(modes.indexOf(root.dataset.mode) + 1) % modes.length];
    kept.set("mode", mode);
    show(mode);
  }
  system.addEventListener("change", () => show(root.dataset.mode));
  show(root.dataset.mode || "auto");
  for (const button of all(".theme-switch-button")) button.addEventListener("click", nextMode);

  // ---- dialogs: search, and the sidebars on a narrow screen
  const closeOutside = (dialog) => dialog.addEventListener("click", (event) => {
    const box = dialog.getBoundingClientRect();
    const within = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
    if (event.target === dialog && !within) dialog.close();
  });
  const search = document.getElementById("pst-search-dialog");
  function openSearch() {
    if (search.open) return search.close();
    search.showModal();
    search.querySelector("input").select();
  }
  if (search) {
    closeOutside(search);
    const mac = /Mac|iPhone|iPad/.test(navigator.platform);
    if (mac) for (const key of all(".kbd-shortcut__modifier")) key.textContent = "⌘";
    for (const button of all(".search-button__button")) button.addEventListener("click", openSearch);
    addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() !== "k" || !(mac ? event.metaKey : event.ctrlKey) || event.shiftKey || event.altKey) return;
      event.preventDefault();
      openSearch();
    });
  }

  function sidebar(toggleSelector, name, hidesWhenWide) {
    const bar = document.getElementById(`pst-${name}-sidebar`);
    const dialog = document.getElementById(`pst-${name}-sidebar-modal`);
    const toggle = document.querySelector(toggleSelector);
    if (!bar || !dialog || !toggle) return;
    const move = (from, to) => {
      to.append(...from.childNodes);
      to.classList.add(...from.classList);
      from.removeAttribute("class");
    };
    toggle.addEventListener("click", () => {
      if (hidesWhenWide && matchMedia("(min-width: 992px)").matches) return bar.classList.toggle("pst-sidebar-hidden");
      move(bar, dialog);
      dialog.showModal();
      return undefined;
    });
    dialog.addEventListener("close", () => { move(dialog, bar); toggle.focus(); });
    dialog.addEventListener("click", (event) => { if (event.target.closest("a[href]")) dialog.close(); });
    closeOutside(dialog);
  }
  sidebar(".primary-toggle", "primary", true);
  sidebar(".secondary-toggle", "secondary", false);

  // ---- where am I on this page
  const entries = new Map(all("#pst-page-toc-nav a[href^='#']").map((a) => [decodeURIComponent(a.hash.slice(1)), a]));
  function mark(link) {
    for (const a of entries.values()) {
      a.classList.toggle("active", a === link);
      if (a === link) a.setAttribute("aria-current", "true"); else a.removeAttribute("aria-current");
    }
  }
  if (entries.size) {
    const seen = new Set();
    const headings = [...entries.keys()].map((id) => document.getElementById(id)).filter(Boolean);
    const watch = new IntersectionObserver((changes) => {
      for (const change of changes) seen[change.isIntersecting ? "add" : "delete"](change.target);
      const last = headings.filter((section) => seen.has(section)).pop();
      if (last) mark(entries.get(last.id));
    }, { rootMargin: "-60px 0px -70% 0px" });
    for (const section of headings) watch.observe(section);
  }

  // ---- code: a copy button each; wide things can be scrolled with the keyboard
  for (const pre of all("div.highlight > pre")) {
    const code = pre.closest(".cell_input");
    if (!code) continue;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy-button", title: "Copy" });
    button.setAttribute("aria-label", "Copy this cell");
    button.innerHTML = '<i class="fa-regular fa-copy"></i>';
    button.addEventListener("click", async () => {
      let done = true;
      try { await navigator.clipboard.writeText(pre.innerText); } catch { done = false; }
      button.dataset.done = done ? "copied" : "not copied: select and press Ctrl+C";
      setTimeout(() => delete button.dataset.done, 1600);
    });
    pre.parentElement.append(button);
  }
  function reachable() {
    const wide = all("pre, .cell_output .output, .table-wrapper, .pst-scrollable-table-container, .ex-figure, .math-wrapper, div.math")
      .map((box) => [box, box.scrollWidth > box.clientWidth + 1]);
    for (const [box, scrolls] of wide) if (scrolls) box.tabIndex = 0; else box.removeAttribute("tabindex");
  }
  addEventListener("load", reachable);
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(reachable, 300); });

  // ---- admonitions that fold
  for (const box of all("div.admonition.dropdown")) {
    const details = document.createElement("details");
    details.className = box.className;
    if (box.id) details.id = box.id;
    const summary = document.createElement("summary");
    const title = box.querySelector(".admonition-title");
    summary.className = "admonition-title";
    summary.append(...title.childNodes);
    title.remove();
    details.append(summary, ...box.childNodes);
    box.replaceWith(details);
  }

  // ---- term cards: a definition beside the pointer or the focus
  const card = document.createElement("div");
  card.className = "term-card";
  card.hidden = true;
  card.setAttribute("aria-hidden", "true"); // screen readers get the same words through aria-describedby
  const definitions = document.getElementById("term-definitions");
  let wait;
  function place(link) {
    const words = definitions.querySelector(`[id="${CSS.escape(link.getAttribute("aria-describedby"))}"]`);
    if (!words) return;
    card.innerHTML = words.innerHTML;
    for (const part of card.querySelectorAll("[id]")) part.removeAttribute("id");
    for (const part of card.querySelectorAll("a")) part.tabIndex = -1;
    card.hidden = false;
    const at = link.getClientRects()[0];
    const left = Math.min(Math.max(8, at.left), root.clientWidth - card.offsetWidth - 8);
    const below = at.bottom + card.offsetHeight + 12 < innerHeight;
    card.style.left = `${left}px`;
    card.style.top = `${below ? at.bottom + 6 : at.top - card.offsetHeight - 6}px`;
  }
  const hide = () => { clearTimeout(wait); card.hidden = true; };
  if (definitions) {
    document.body.append(card);
    for (const link of all("a.term[aria-describedby]")) {
      link.addEventListener("pointerenter", (event) => {
        clearTimeout(wait);
        if (event.pointerType === "mouse") wait = setTimeout(place, 150, link);
      });
      link.addEventListener("pointerleave", () => { clearTimeout(wait); wait = setTimeout(hide, 200); });
      link.addEventListener("focus", () => { if (link.matches(":focus-visible")) place(link); });
      link.addEventListener("blur", hide);
    }
    card.addEventListener("pointerenter", () => clearTimeout(wait));
    card.addEventListener("pointerleave", () => { wait = setTimeout(hide, 200); });
    addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
    addEventListener("scroll", hide, { passive: true });
  }

  // ---- progress, and whatever computes
  const module = (name) => import(new URL(name, here).href);
  module("progress.mjs").catch(() => {}); // a page opened from a file: nothing is kept
  if (document.querySelector(".explorer, .answer-box")) {
    module("live.mjs").catch((problem) => {
      const reason = location.protocol === "file:"
        ? "this page was opened as a file, and browsers start no programs from files; serve the folder instead (make book)"
        : String(problem.message || problem);
      for (const box of all(".explorer .ex-error, .answer-result")) {
        box.hidden = false;
        box.dataset.state = "failed";
        box.textContent = `Not live: ${reason}.`;
      }
    });
  }
})();
