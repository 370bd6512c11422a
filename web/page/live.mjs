// Sets up a page's explorers and answer boxes, and the one Python that they share.
import { setUpAnswers } from "./answers.mjs";
import { all } from "./dom.mjs";
import { Engine } from "./engine.mjs";
import { setUpExplorers } from "./explorer/page.mjs";
import { startBeside } from "./start.mjs";

export const engine = new Engine();
const boxes = all(document, ".explorer, .answer-box", HTMLElement);

/**
 * Skip the rendering of content out of view, at its current height, so that an event costs only its own screen. A visible
 * section is skipped once it has left the window, because the browser would repaint it as if it had moved.
 */
function skipUnseen() {
  const sections = all(document, "article > section > section", HTMLElement);
  const heights = sections.map((section) => section.getBoundingClientRect().height);
  sections.forEach((section, at) => { section.style.containIntrinsicHeight = `auto ${heights[at]}px`; });
  document.documentElement.classList.add("skips-unseen");
  const seen = new IntersectionObserver((changes) => {
    for (const { isIntersecting, target } of changes) {
      if (isIntersecting) continue;
      target.classList.add("unseen");
      seen.unobserve(target);
    }
  }, { rootMargin: "50% 0px" });
  for (const section of sections) seen.observe(section);
}

engine.onchange((state) => { if (state === "live") skipUnseen(); });
setUpExplorers(engine);
setUpAnswers(engine);
document.documentElement.dataset.live = engine.state;
startBeside(boxes, engine);
