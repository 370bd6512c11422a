// Dialogs: search, and the sidebars on a narrow screen.
import { loadScript } from "../book.mjs";
import { all, find, need } from "../dom.mjs";

/** @param {HTMLDialogElement} dialog */
function closeOutside(dialog) {
  dialog.addEventListener("click", (event) => {
    const box = dialog.getBoundingClientRect();
    const within = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
    if (event.target === dialog && !within) dialog.close();
  });
}

export function setUpSearch() {
  const dialog = find(document, "#search-dialog", HTMLDialogElement);
  if (!dialog) return;
  let loaded = false;
  const open = () => {
    if (!loaded) loadScript("search.js");
    loaded = true;
    if (dialog.open) dialog.close();
    else {
      dialog.showModal();
      need(dialog, "input", HTMLInputElement).select();
    }
  };
  closeOutside(dialog);
  const mac = /Mac|iPhone|iPad/.test(navigator.platform);
  if (mac) for (const key of all(document, ".kbd-shortcut__modifier", HTMLElement)) key.textContent = "⌘";
  for (const button of all(document, ".search-button__button", HTMLElement)) button.addEventListener("click", open);
  addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(mac ? event.metaKey : event.ctrlKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    open();
  });
}

/**
 * @param {HTMLElement} from
 * @param {HTMLElement} to
 */
function move(from, to) {
  to.append(...from.childNodes);
  to.classList.add(...from.classList);
  from.removeAttribute("class");
}

/**
 * Move a sidebar's content into a dialog while the dialog is open.
 * @param {"primary" | "secondary"} name
 * @param {boolean} hidesWhenWide whether its button hides it on a wide screen
 */
export function setUpSidebar(name, hidesWhenWide) {
  const bar = find(document, `#pst-${name}-sidebar`, HTMLElement);
  const dialog = find(document, `#pst-${name}-sidebar-modal`, HTMLDialogElement);
  const toggle = find(document, `.${name}-toggle`, HTMLElement);
  if (!bar || !dialog || !toggle) return;
  toggle.addEventListener("click", () => {
    if (hidesWhenWide && matchMedia("(min-width: 992px)").matches) bar.classList.toggle("pst-sidebar-hidden");
    else {
      move(bar, dialog);
      dialog.showModal();
    }
  });
  dialog.addEventListener("close", () => { move(dialog, bar); toggle.focus(); });
  dialog.addEventListener("click", (event) => { if (event.target instanceof Element && event.target.closest("a[href]")) dialog.close(); });
  closeOutside(dialog);
}
