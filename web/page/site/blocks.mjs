// Blocks of the text: copies code, scrolls wide blocks with the keyboard, and folds admonitions.
import { all, find } from "../dom.mjs";

const COPIED_MS = 1600; // how long a copy button shows its confirmation
const RESIZED_MS = 300;
const WIDE = "pre, .cell_output .output, .table-wrapper, .pst-scrollable-table-container, .ex-figure, .ex-narrow, .inspected figure, .inspected .scroll, .math-wrapper, div.math";

/** @param {HTMLElement} pre */
function copyButton(pre) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy-button", title: "Copy" });
  button.setAttribute("aria-label", "Copy this");
  button.innerHTML = '<i class="fa-regular fa-copy"></i>';
  button.addEventListener("click", async () => {
    let done = true;
    try { await navigator.clipboard.writeText(pre.innerText); } catch { done = false; }
    button.dataset.done = done ? "copied" : "not copied; select the text and press Ctrl+C";
    setTimeout(() => delete button.dataset.done, COPIED_MS);
  });
  return button;
}

/** Copy a link's own address while it is followed. @param {HTMLAnchorElement} link */
async function copyAddress(link) {
  try { await navigator.clipboard.writeText(link.href); } catch { return; } // it is in the address bar
  link.dataset.done = "copied";
  setTimeout(() => delete link.dataset.done, COPIED_MS);
}

/** Copy the page's Markdown, with its computed numbers. @param {HTMLButtonElement} button */
async function copyPage(button) {
  const address = button.dataset.markdown ?? "";
  let done = true;
  try {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(answer.statusText);
    await navigator.clipboard.writeText(await answer.text());
  } catch { done = false; }
  if (!done) { location.href = address; return; } // show the Markdown instead
  button.dataset.done = "copied";
  setTimeout(() => delete button.dataset.done, COPIED_MS);
}

export function setUpCopying() {
  for (const button of all(document, "button.copy-page", HTMLButtonElement)) button.addEventListener("click", () => copyPage(button));
  for (const link of all(document, "a.headerlink", HTMLAnchorElement)) link.addEventListener("click", () => copyAddress(link));
  for (const pre of all(document, "div.highlight > pre", HTMLElement)) {
    if (pre.closest(".cell_input, .colophon")) pre.parentElement?.append(copyButton(pre));
  }
}

/** Make scrollable blocks focusable. Everything is measured before any change, so that the page is laid out once. */
function reachable() {
  const measured = all(document, WIDE, HTMLElement).map((box) => ({ box, scrolls: box.scrollWidth > box.clientWidth + 1 }));
  for (const { box, scrolls } of measured) if (scrolls) box.tabIndex = 0; else box.removeAttribute("tabindex");
}

export function setUpScrolling() {
  addEventListener("load", reachable);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(reachable, RESIZED_MS); });
}

export function setUpFolding() {
  for (const box of all(document, "div.admonition.dropdown", HTMLElement)) {
    const details = document.createElement("details"), summary = document.createElement("summary");
    details.className = box.className;
    if (box.id) details.id = box.id;
    summary.className = "admonition-title";
    const title = find(box, ".admonition-title", HTMLElement);
    summary.append(...title?.childNodes ?? []);
    title?.remove();
    details.append(summary, ...box.childNodes);
    box.replaceWith(details);
  }
}
