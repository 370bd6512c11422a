// Answer boxes: what is typed goes to the library's check; the page only shows what it says.
import { record, read } from "./progress.mjs";

const SIGNS = { right: "✓", wrong: "✗", unread: "?", open: "…" };

export function setup(engine) {
  for (const form of document.querySelectorAll("form.answer-box")) box(form, engine);
}

function given(form) {
  const chosen = form.querySelector("input[type=radio]:checked");
  return chosen ? chosen.value : form.querySelector("input[type=text]")?.value ?? "";
}

function box(form, engine) {
  const key = form.dataset.check;
  const result = form.querySelector(".answer-result");
  const hints = form.querySelector(".answer-hints");
  const tell = (state, text) => { result.dataset.state = state; result.textContent = text; };
  const failed = (problem) => tell("failed", `Not checked: ${problem.message}. The notebook checks the same answer.`);
  if (read()[key]?.solved) tell("kept", "✓ Solved before.");

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = given(form);
    if (!text.trim()) return tell("open", "… Write or choose an answer first.");
    if (engine.state !== "live") tell("starting", "Starting Python…");
    try {
      const { ok, status, message } = await engine.ask("judge", key, text);
      tell(status, `${SIGNS[status] ?? ""} ${message}`);
      if (status === "right" || status === "wrong") {
        record(key, (before) => ({ solved: before.solved || ok, tries: before.tries + 1 }));
      }
    } catch (problem) { failed(problem); }
    return undefined;
  });

  form.querySelector(".answer-hint")?.addEventListener("click", async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      const { n, of, text } = await engine.ask("hint", key, hints.children.length + 1);
      if (n) {
        hints.append(Object.assign(document.createElement("li"), { textContent: text }));
        record(key, (before) => ({ hints: Math.max(before.hints, n) }));
      }
      button.disabled = n >= of;
      button.textContent = n >= of ? "No more hints" : `Hint ${n + 1} of ${of}`;
    } catch (problem) { button.disabled = false; failed(problem); }
  });
}
