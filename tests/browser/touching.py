"""How a test touches a page: moves a control, presses Reset, gives an answer."""

import re

from scalingbook_book.chapters import checks, explorers
from scalingbook_book.reader.checks.programs import SOLVED
from scalingbook_book.reader.explorers.controls import Choice, Notation, Slider, Steps, Switch
from tests.browser.conftest import PATIENCE_MS

EXAMPLE = re.compile(r"[A-Z]\[[^\]]*\](?:\{\w+\})?")  # an array in the notation
PAINT = """([root, name, value]) => new Promise((done, failed) => {
  const all = [...root.querySelectorAll(`[name="${name}"]`)];
  const input = all.find((one) => one.type !== 'radio' || one.value === value);
  const timer = setTimeout(() => failed(new Error('nothing was painted')), PATIENCE_MS);
  const finish = () => { clearTimeout(timer); setTimeout(done, 0); };
  root.addEventListener('book:painted', finish, { once: true });
  if (['radio', 'checkbox'].includes(input.type)) input.checked = value === true || input.type === 'radio';
  else input.value = value;
  input.dispatchEvent(new Event('input', { bubbles: true }));
})""".replace("PATIENCE_MS", str(PATIENCE_MS))

OVER = """async (root) => {
  for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame);  // what was painted is laid out
  const bottom = (part) => part.getBoundingClientRect().bottom;
  return bottom(root.querySelector('.ex-note')) - bottom(root);
}"""


def drag(live, root):
    """Move the first slider from end to end: how far the content exceeds its box, the mouse still down."""
    slider = root.query_selector("input[type=range]")
    if slider is None:
        return 0
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    for k in range(9):
        live.page.mouse.move(box["x"] + box["width"] * (0.1 + 0.1 * k), middle)
        if k == 0:
            live.page.mouse.down()
        live.page.wait_for_timeout(40)
    over = root.evaluate(OVER)
    live.page.mouse.up()
    return over


def others(control):
    """Some states that a control is not in at the start, near and far."""
    match control:
        case Slider():
            low, high, step = control.stops
            near = (low, high, control.initial + step, control.initial - step)
            return [stop for stop in near if stop != control.initial and low <= stop <= high]
        case Choice():
            return [option for option in control.options if option != control.initial]
        case Switch():
            return [not control.initial]
        case Steps():
            return [control.initial + 1, control.initial + 2]
        case Notation():  # the examples that its hint gives
            return [text for text in EXAMPLE.findall(control.hint) if text != control.initial]
    raise TypeError(control)


def roots(live):
    """Each explorer of a page with the object behind it."""
    return [
        (root, explorers.find(root.get_attribute("data-explorer")))
        for root in live.page.query_selector_all(".explorer")
    ]


def reset(live, root):
    """Press Reset and wait for the view at the start."""
    live.page.evaluate(
        """(root) => new Promise((done) => {
          root.addEventListener('book:painted', () => setTimeout(done, 0), { once: true });
          root.querySelector('.ex-reset').click();
        })""",
        root,
    )


# ---- answer boxes


def boxes(live):
    """Each answer box of a page with its check."""
    return [
        (form, checks.find(form.get_attribute("data-check")))
        for form in live.page.query_selector_all("form.answer-box")
    ]


GIVE = """([form, text]) => new Promise((done) => {
  const result = form.querySelector('.answer-result'), check = form.querySelector('.answer-check');
  if (!check.checkVisibility()) throw new Error('nobody can press Check');
  result.dataset.state = 'asked';
  const choice = [...form.querySelectorAll('input[type=radio]')].find((one) => one.value === text);
  if (choice) choice.click();
  else {
    const field = form.querySelector('input[type=text]');
    field.value = text;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    field.dispatchEvent(new Event('change', { bubbles: true }));
  }
  new MutationObserver((_, watch) => {
    if (['asked', 'starting'].includes(result.dataset.state)) return;
    watch.disconnect();
    setTimeout(() => done([result.dataset.state, result.innerText]), 0);
  }).observe(result, { attributes: true, attributeFilter: ['data-state'] });
  check.click();
})"""


def give(live, form, text):
    """Type or choose an answer, press Check, and return the judgement: in one go, there are hundreds."""
    return tuple(live.page.evaluate(GIVE, [form, text]))


def right(check):
    if check.kind == "program":
        return SOLVED
    answer = check.answer()
    return repr(float(answer)) if check.kind == "number" else str(answer)


def wrong(check):
    if check.kind == "choice":
        return next(choice for choice in check.choices if choice != check.answer())
    return "Q[Z, W_X]" if check.kind == "notation" else repr(float(check.answer()) * 17.3 + 1)
