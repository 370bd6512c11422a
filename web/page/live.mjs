// What computes on a page: its explorers and answer boxes, and one Python that starts on touch or when idle.
import { setUpAnswers } from "./answers.mjs";
import { all, idle } from "./dom.mjs";
import { Engine } from "./engine.mjs";
import { setUpExplorers } from "./explorer/page.mjs";

const LONGEST_MS = 5000; // until Python starts beside an explorer

const engine = new Engine();
const boxes = all(document, ".explorer, .answer-box", HTMLElement);

/** What is out of sight is skipped, at the height it has: an event then costs what its own screen costs. */
function skipUnseen() {
  const sections = all(document, "article > section > section", HTMLElement);
  const heights = sections.map((section) => section.offsetHeight);
  sections.forEach((section, at) => { section.style.containIntrinsicHeight = `auto ${heights[at]}px`; });
  document.documentElement.classList.add("skips-unseen");
}

/** Start when a control is touched ... */
function startOnTouch() {
  const start = () => engine.start();
  for (const box of boxes) {
    for (const touch of ["pointerdown", "focusin", "keydown"]) box.addEventListener(touch, start, { once: true, passive: true });
  }
  if (boxes.some((box) => box.contains(document.activeElement))) start();
}

/** ... or when one is near and the browser has nothing else to do. */
function startWhenIdle() {
  if (navigator.connection?.saveData) return;
  const near = new IntersectionObserver((changes) => {
    if (!changes.some((one) => one.isIntersecting)) return;
    near.disconnect();
    idle(() => engine.start(), LONGEST_MS);
  }, { rootMargin: "50% 0px" });
  for (const box of boxes) near.observe(box);
}

engine.onchange((state) => { if (state === "live") skipUnseen(); });
setUpExplorers(engine);
setUpAnswers(engine);
document.documentElement.dataset.live = engine.state;
startOnTouch();
if (document.readyState === "complete") startWhenIdle(); else addEventListener("load", startWhenIdle);
