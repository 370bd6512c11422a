// What a reader has solved, kept in this browser only: counts in the contents, export, import, erase.
const STORE = "scalingbook.progress";
const chapters = globalThis.bookExercises ?? {}; // written by the build
const all = (selector) => [...document.querySelectorAll(selector)];

export function read() {
  try { return valid(JSON.parse(localStorage.getItem(STORE))); } catch { return {}; }
}

function valid(kept) {
  const entries = kept && typeof kept === "object" && !Array.isArray(kept) ? Object.entries(kept) : [];
  return Object.fromEntries(entries.filter(([key, one]) => /^[a-z_0-9]+\.\w+$/.test(key) && one && typeof one === "object"));
}

function write(kept) {
  try { localStorage.setItem(STORE, JSON.stringify(kept)); } catch { /* a private window: nothing is kept */ }
  show(kept);
}

export function record(key, change) {
  const kept = read();
  const before = kept[key] ?? { solved: false, tries: 0, hints: 0 };
  kept[key] = { ...before, ...change(before), when: new Date().toISOString().slice(0, 10) };
  write(kept);
}

function solvedIn(stem, kept) {
  return Object.entries(kept).filter(([key, one]) => key.startsWith(`${stem}.`) && one.solved).length;
}

function show(kept) {
  let solved = 0, total = 0;
  for (const [stem, { page, count }] of Object.entries(chapters)) {
    const done = Math.min(solvedIn(stem, kept), count);
    solved += done;
    total += count;
    for (const link of tocLinks(page)) label(link, done, count);
  }
  for (const panel of all(".progress-panel")) {
    panel.hidden = total === 0;
    panel.querySelector(".progress-total").textContent = `${solved} of ${total} exercises`;
    Object.assign(panel.querySelector("progress"), { max: Math.max(total, 1), value: solved });
  }
  for (const box of all(".answer-box")) box.classList.toggle("solved", Boolean(kept[box.dataset.check]?.solved));
}

function tocLinks(page) {
  const target = new URL(page, new URL(document.documentElement.dataset.content_root || "./", location.href));
  return all(".bd-sidebar-primary a.reference, #pst-primary-sidebar-modal a.reference")
    .filter((a) => a.pathname === target.pathname);
}

function label(link, done, count) {
  const badge = link.querySelector(".progress-count") ?? link.appendChild(document.createElement("span"));
  badge.className = "progress-count";
  badge.textContent = `${done}/${count}`;
  badge.title = `${done} of ${count} exercises solved`;
  badge.classList.toggle("all", done === count);
}

const actions = {
  export(note) {
    const text = JSON.stringify({ book: "scalingbook", version: 1, progress: read() }, null, 2);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "scalingbook-progress.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    note("Saved as scalingbook-progress.json.");
  },
  import(note) {
    const input = Object.assign(document.createElement("input"), { type: "file", accept: "application/json,.json" });
    input.addEventListener("change", async () => {
      try {
        const file = JSON.parse(await input.files[0].text());
        if (file.book !== "scalingbook") throw new Error("not an export of this book");
        write({ ...read(), ...valid(file.progress) });
        note("Imported.");
      } catch (problem) {
        note(`Not imported: ${problem.message}. Choose a file that Export wrote.`);
      }
    });
    input.click();
  },
  erase(note, button) {
    if (button.dataset.sure) {
      write({});
      note("Erased.");
      delete button.dataset.sure;
      button.textContent = "Erase";
      return;
    }
    button.dataset.sure = "yes";
    button.textContent = "Erase all?";
    note("Press once more to erase; Export keeps a copy.");
    setTimeout(() => { delete button.dataset.sure; button.textContent = "Erase"; }, 6000);
  },
};

for (const panel of all(".progress-panel")) {
  const note = (text) => { panel.querySelector(".progress-note").textContent = text; };
  for (const button of panel.querySelectorAll("[data-progress]")) {
    button.addEventListener("click", () => actions[button.dataset.progress](note, button));
  }
}
addEventListener("storage", (event) => { if (event.key === STORE) show(read()); });
show(read());
