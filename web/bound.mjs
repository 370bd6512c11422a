// Turns an open page of the site into what is bound in a volume: its article alone, still, everything unfolded.
// `bound` is called in the page by web/bound.py; XMLSerializer then gives it the names and spaces that XML asks for.

/** What only a screen needs. */
const LEFT_OUT = "a.headerlink, button, script, noscript, .js-only, .paths, .glossary-filter, .glossary-find, .fig-narrow, "
  + ".ex-narrow, div.cell:has(.explorer) > .cell_input, details.hide > summary, .ex-buttons, .ex-note, .ex-error, .answer-result, .answer-hints, .exercise-notebook, p:has(> a[download]:not(.reference)), .anchor-only, #term-definitions, .toctree-wrapper, tr.widest";

/** Lines of a code or an output that may break between two pages. */
const LONG = 36;

/** @param {Element} root @param {string} selector */
const all = (root, selector) => [...root.querySelectorAll(selector)];

/** @param {string} tag @param {string} name @param {string} text */
function made(tag, name, text) {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  return element;
}

/** A control's name and value. @param {Element} control */
function setting(control) {
  const field = control.querySelector("input, select");
  const label = control.querySelector("label")?.textContent ?? "";
  if (field instanceof HTMLSelectElement) return `${label} ${field.selectedOptions[0]?.textContent ?? ""}`;
  if (field instanceof HTMLInputElement && field.type === "checkbox") return `${label}: ${field.checked ? "yes" : "no"}`;
  const shown = control.querySelector("output")?.textContent;
  return `${label} ${shown ?? (field instanceof HTMLInputElement ? field.value : "")}`;
}

/** An explorer's controls become one line, an answer's box a line to write on, unless it is given in a notebook. @param {Element} article */
function settle(article) {
  for (const form of all(article, "form.ex-controls")) {
    form.replaceWith(made("p", "ex-parameters", `Settings: ${all(form, ".ex-control").map(setting).join("; ")}.`));
  }
  for (const form of all(article, "form.answer-box")) {
    const choices = all(form, ".answer-choices label span").map((one) => one.textContent);
    const asked = choices.length ? choices.join(" / ") : form.querySelector(".answer-unit")?.textContent ?? "";
    const inNotebook = form.querySelector("input[value='solved in the notebook']"); // whose only choice is that it was
    const line = made("p", "answer-asked", inNotebook ? "" : `Your answer, ${asked}: ____________ `);
    const solution = form.querySelector("a.answer-solution");
    if (solution) line.append(solution);
    form.replaceWith(line);
  }
  for (const folded of all(article, "details")) {
    const open = document.createElement("div");
    open.className = folded.className;
    if (folded.id) open.id = folded.id;
    const summary = folded.querySelector(":scope > summary");
    if (summary) summary.replaceWith(summed(summary));
    open.append(...folded.childNodes);
    folded.replaceWith(open);
  }
}

/** @param {Element} summary */
function summed(summary) {
  const line = document.createElement("p");
  line.className = `summary ${summary.className}`;
  line.append(...summary.childNodes);
  return line;
}

/** KaTeX's letters alone, told as TeX. @param {Element} formula @param {string} tex */
function drawn(formula, tex) {
  formula.querySelector(".katex-mathml")?.remove();
  const letters = formula.querySelector(".katex-html");
  letters?.removeAttribute("aria-hidden");
  letters?.setAttribute("role", "img");
  letters?.setAttribute("aria-label", tex);
}

/** A formula is drawn on paper, and MathML in an e-book. @param {Element} article @param {boolean} joined */
function formulas(article, joined) {
  for (const formula of all(article, ".katex")) {
    const math = formula.querySelector("math"), annotation = formula.querySelector("annotation");
    const tex = annotation?.textContent ?? "";
    if (joined || !math) { drawn(formula, tex); continue; }
    annotation?.remove();
    math.setAttribute("alttext", tex);
    (formula.closest(".katex-display") ?? formula).replaceWith(math);
  }
}

/**
 * Where a link leads: another page of the volume, a place in it, or nowhere else than to another host.
 * @param {URL} url @param {Record<string, string>} pages @param {boolean} joined
 */
function target(url, pages, joined) {
  if (url.origin !== location.origin) return url.protocol.startsWith("http") ? url.href : "";
  const name = pages[url.pathname.slice(1) || "index.html"];
  const place = decodeURIComponent(url.hash.slice(1));
  if (!name) return "";
  if (joined) return `#${name}${place && `--${place}`}`;
  return `${name}.xhtml${place && `#${place}`}`;
}

/** @param {Element} article @param {Record<string, string>} pages @param {boolean} joined */
function links(article, pages, joined) {
  for (const link of all(article, "a[href]")) {
    const leads = target(new URL(link.getAttribute("href") ?? "", document.baseURI), pages, joined);
    if (leads) link.setAttribute("href", leads);
    else link.replaceWith(...link.childNodes);
    link.removeAttribute("download");
    link.removeAttribute("aria-describedby"); // the definition for its card, which stays on the site
  }
  for (const image of all(article, "img")) if (image instanceof HTMLImageElement) image.setAttribute("src", image.src);
}

/** Every id of the page begins with its name: many pages stand in one. @param {Element} article @param {string} name */
function rename(article, name) {
  const known = new Set(all(article, "[id]").map((element) => element.id));
  for (const element of all(article, "*")) {
    for (const attribute of ["id", "for", "aria-labelledby", "aria-describedby"]) {
      const said = element.getAttribute(attribute);
      if (said) element.setAttribute(attribute, said.split(" ").map((one) => `${name}--${one}`).join(" "));
    }
    for (const attribute of element.attributes) {
      attribute.value = attribute.value.replaceAll(/url\(#([^)]+)\)/g, (whole, id) => (known.has(id) ? `url(#${name}--${id})` : whole));
    }
  }
}

const GIVEN_UP = new Set(["border", "align", "valign", "rules", "frame", "tabindex"]);

/** Attributes that a strict reader refuses: colours by property, data, names that HTML has given up. @param {Element} element */
function strict(element) {
  for (const name of element.getAttributeNames()) {
    const value = element.getAttribute(name) ?? "";
    if (value.includes("var(--")) element.setAttribute(name, value.replaceAll(/var\(--[\w-]+,\s*([^()]+)\)/g, "$1"));
    if (name.startsWith("data-") || (GIVEN_UP.has(name) && !(element instanceof SVGElement))) element.removeAttribute(name);
  }
}

/** A heading is one line: the outline is made of its letters. @param {Element} heading */
function oneLine(heading) {
  const texts = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) text.nodeValue = text.nodeValue?.replaceAll(/\s+/g, " ") ?? null;
}

/** What browsers repair: ids twice, words in KaTeX's names as of mod, roles of DPUB that e-books have left. @param {Element} article */
function mend(article) {
  for (const token of all(article, "math :is(mi, mn, mo, mtext):has(*)")) token.replaceChildren(token.textContent ?? "");
  for (const old of all(article, "[role^=doc-]")) old.removeAttribute("role");
  all(article, "h1, h2, h3, h4").forEach(oneLine);
  const seen = new Set();
  for (const element of all(article, "*")) {
    if (element.id && seen.has(element.id)) element.removeAttribute("id");
    seen.add(element.id);
    strict(element);
  }
}

/** What stays together on a page of paper. @param {Element} article */
function keep(article) {
  for (const lead of all(article, "p > strong:only-child")) { // a line in bold above a list is its heading
    if (lead.textContent === lead.parentElement?.textContent) lead.parentElement?.classList.add("run-in");
  }
  for (const text of all(article, "pre")) text.classList.toggle("long", (text.textContent ?? "").split("\n").length > LONG);
}

/** Places that the contents list: each with the id that it has in the volume. @param {Element[]} found @param {(one: Element) => string} said */
const places = (found, said) => found.map((one) => ({ anchor: one.closest("[id]")?.id ?? "", said: said(one).replaceAll(/\s+/g, " ").trim() }));

/**
 * The page's article as XHTML, its title, the sections and the figures in it.
 * @param {{ name: string, pages: Record<string, string>, joined: boolean }} volume
 */
export function bound({ name, pages, joined }) {
  const article = document.querySelector("article.bd-article");
  if (!article) throw new Error("no article");
  for (const sorting of all(article, "th > button")) sorting.replaceWith(...sorting.childNodes); // a heading stays
  for (const one of all(article, LEFT_OUT)) one.remove();
  settle(article);
  formulas(article, joined);
  links(article, pages, joined);
  keep(article);
  mend(article);
  if (joined) rename(article, name);
  const title = article.querySelector("h1")?.textContent?.trim() ?? name;
  const sections = places(all(article, "section > h2"), (one) => one.textContent ?? "");
  const figures = places(all(article, "figure.fig[id] > figcaption"), (one) => (one.textContent ?? "").replace(/(?<=\w\.) .*$/s, ""));
  const write = new XMLSerializer();
  const html = [...article.children].map((part) => write.serializeToString(part)).join("\n");
  return { title, sections, figures, html: joined ? `<article class="bd-article" id="${name}">${html}</article>` : html };
}
