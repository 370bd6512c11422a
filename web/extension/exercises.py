"""The `{exercises}` directive: questions, answer boxes, hints, and links to the solutions.

`{exercises} rooflines` shows the exercises of `solutions/rooflines.md` that it names in its body; without
names, all those that no page names. A page may name exercises of several chapters. The correct answer stays
in the library's check, which the page's worker evaluates.
"""

import posixpath
from collections.abc import Mapping
from html import escape
from itertools import groupby

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from scalingbook_book.chapters import checks
from scalingbook_book.reader.checks.check import Check
from scalingbook_book.reader.checks.programs import SOLVED
from tools import exercises
from tools.environment import ROOT
from web import downloads
from web.extension import numbers
from web.extension.page import colab
from web.extension.page_data import page_data

LOG = logging.getLogger(__name__)
# Colab opens a notebook from a public address; if the book has none, readers upload the notebook.
IN_COLAB = '<a href="{address}">Open the notebook in Colab</a>.'
UPLOADED = (
    '<a href="{here}" download>Download the notebook</a>, and open it in Jupyter, or in Colab with '
    "<em>File &gt; Upload notebook</em>."
)
WRITE_AND_RUN = """<div class="exercise-programs">
<p>An exercise that asks for a function is solved in the notebook. (JAX does not run on this page: its
compiled part, jaxlib, has no build for browsers.)</p>
<ol>
<li>{opened}</li>
<li>Run its first cells, and write your function below the title of the exercise.</li>
<li>Run the cells there. The notebook runs the function, judges the result, and says what is wrong.</li>
</ol>
</div>
"""
LEVELS = {1: "warm-up", 2: "core", 3: "stretch"}


class Exercises(SphinxDirective):
    """The directive that shows exercises of one chapter."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the named exercises in that order, or the chapter's remaining ones."""
        stem, names = self.arguments[0], " ".join(self.content).split()
        for path in exercises.asking(stem):  # an exercise that one page names is not shown on another
            self.env.note_dependency(str(path))
        self.env.note_dependency(str(ROOT / "solutions" / f"{stem}.md"))
        self.env.note_dependency(str(ROOT / "solutions" / f"{stem}.ipynb"))  # the outputs of given cells
        for path in (ROOT / "scalingbook_book" / "chapters" / stem / "checks").rglob("*.py"):
            self.env.note_dependency(str(path))
        try:
            known, read = checks.catalog(stem), exercises.shown(stem, names)
        except (ValueError, OSError) as error:
            LOG.warning("exercises %s: %s", stem, error, location=self.get_location())
            return []
        asked, keys = shown(self.env).setdefault(self.env.docname, []), [one.key for one in read]
        above = [key for key in asked if key.startswith(f"{stem}.")]  # a page may ask in several sections
        asked.extend(keys)
        intro = "" if above else self._notebook(stem)
        if _ask_for_a_function(keys, known) and not _ask_for_a_function(above, known):
            intro += self._where_code_runs(stem)
        intro += "" if above else self._elsewhere(stem, keys)
        return [*([raw(intro)] if intro else []), *(self._exercise(one, known.get(one.key)) for one in read)]

    def _notebook(self, stem: str) -> str:
        """Return the link that downloads the exercises as a notebook."""
        link = f'<a href="{self._download(stem)}" download>Download these exercises as a notebook</a>'
        return f'<p class="exercise-notebook">{link}: it includes the library and runs in Colab as is.</p>'

    def _download(self, stem: str) -> str:
        here = posixpath.dirname(self.env.docname) or "."
        return posixpath.relpath(f"{downloads.FOLDER}/exercises/{stem}.ipynb", here)

    def _where_code_runs(self, stem: str) -> str:
        """Return how a function is written and checked in the notebook."""
        address = colab(self.env.app.book_repository, f"exercises/{stem}.ipynb")  # type: ignore[attr-defined]
        opened = IN_COLAB.format(address=address) if address else UPLOADED.format(here=self._download(stem))
        return WRITE_AND_RUN.format(opened=opened)

    def _elsewhere(self, stem: str, here: list[str]) -> str:
        """Return a folded line that says on which pages the chapter's other exercises are."""
        self.env.note_dependency(str(ROOT / "_toc.yml"))
        others: dict[str, list[exercises.Exercise]] = {}
        shown_by = places(stem)
        for one in exercises.read(stem):
            page = shown_by.get(one.key, "")
            if one.key not in here and page not in ("", posixpath.basename(self.env.docname)):
                others.setdefault(page, []).append(one)
        told = "; ".join(_others(page, others[page]) for page in sorted(others, key=numbers.rank))
        summary = "The notebook also contains exercises that are on other pages."
        listed = f"<summary>{summary}</summary><p>{told}.</p>"
        return f'<details class="exercise-others">{listed}</details>' if told else ""

    def _exercise(self, exercise: exercises.Exercise, check: Check | None) -> nodes.Node:
        if check is None:
            LOG.warning("%s has no check", exercise.key, location=self.get_location())
            return nodes.container()
        box = nodes.container(classes=["exercise"])
        box += raw(_heading(exercise, check))
        self.state.nested_parse(StringList(exercise.question_md.splitlines(), "exercise"), 0, box)
        for cell in exercise.given:
            box += nodes.literal_block(cell.source, cell.source, language="python")
            output = exercises.output(exercise.key.partition(".")[0], cell)
            if output.text:
                classes = ["exercise-output"]
                box += nodes.literal_block(output.text, output.text, language="text", classes=classes)
            if output.figure:
                box += raw(output.figure)
        if check.kind == "program":
            title = escape(f"{exercise.number}. {exercise.title}")
            box += raw(f"<p>Write your function below <em>{title}</em> in the notebook.</p>")
        box += raw(form(exercise, check, self._solution(exercise)))
        return box

    def _solution(self, exercise: exercises.Exercise) -> str:
        stem = exercise.key.partition(".")[0]
        page = posixpath.relpath(f"solutions/{stem}.html", posixpath.dirname(self.env.docname) or ".")
        return f"{page}#{nodes.make_id(f'{exercise.number}. {exercise.title}')}"


def _ask_for_a_function(keys: list[str], known: Mapping[str, Check]) -> bool:
    """Return whether one of these exercises is answered with a function."""
    return any(key in known and known[key].kind == "program" for key in keys)


def places(stem: str) -> dict[str, str]:
    """Return the page that shows each exercise of a chapter, in the order of the solutions."""
    shown_by = {
        one.key: path.stem
        for path, names in exercises.asking(stem).items()
        for one in exercises.shown(stem, names)
    }
    return {one.key: shown_by[one.key] for one in exercises.read(stem) if one.key in shown_by}


def _others(page: str, found: list[exercises.Exercise]) -> str:
    """Return the exercises on another page: "2.6 to 2.8 in 2A Narrow layers"."""
    stem = found[0].key.partition(".")[0]
    own = sorted(one.number for one in found)
    runs = [
        list(run) for _, run in groupby(own, lambda n: n - own.index(n))
    ]  # of numbers that follow one another
    told = [[numbers.of_exercise(page, stem, one) for one in run] for run in runs]
    said = ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in told)
    link = f'<a class="reference internal" href="{page}.html#{name(found[0].key)}">'
    return f"{said} in {link}{escape(numbers.named(page))}</a>"


def raw(html: str) -> nodes.raw:
    """Return a node with raw HTML."""
    return nodes.raw("", html, format="html")


def name(key: str) -> str:
    """Return the id of an exercise in its page."""
    return f"exercise-{key.replace('.', '-')}"


def _heading(exercise: exercises.Exercise, check: Check) -> str:
    level = LEVELS[check.difficulty]
    stars = "●" * check.difficulty + "○" * (3 - check.difficulty)
    title = f"{exercise.number}. {escape(exercise.title)}"
    return (
        f'<h3 class="exercise-title" id="{name(exercise.key)}">{title} '
        f'<span class="difficulty"><span aria-hidden="true">{stars}</span> {level}</span></h3>'
    )


def form(exercise: exercises.Exercise, check: Check, solution: str) -> str:
    """Return the answer box as HTML, which contains neither answers nor hints."""
    hint = (
        f'<button type="button" class="answer-hint">Hint 1 of {len(check.hints)}</button>'
        if check.hints
        else ""
    )
    return f"""<form class="answer-box" data-check="{exercise.key}" autocomplete="off">
{_field(exercise, check)}
<p class="answer-buttons"><button type="submit" class="answer-check js-only">Check</button>
<span class="js-only">{hint}</span>
<a class="answer-solution" href="{solution}">Worked solution</a></p>
<p class="answer-result" role="status" aria-live="polite"></p>
<ol class="answer-hints" aria-live="polite"></ol>
</form>"""


def _field(exercise: exercises.Exercise, check: Check) -> str:
    ident = f"answer-{exercise.key.replace('.', '-')}"
    if check.choices:
        radios = "".join(
            f'<label><input type="radio" name="answer" value="{escape(choice)}"> '
            f"<span>{escape(choice)}</span></label>"
            for choice in check.choices
        )
        return f'<fieldset class="answer-choices"><legend>Your answer</legend>{radios}</fieldset>'
    if check.kind == "program":
        said = "<span>The notebook accepted my function</span>"
        said = f'<input type="radio" name="answer" value="{SOLVED}"> {said}'
        legend = "<legend>Your function</legend>"
        return f'<fieldset class="answer-choices">{legend}<label>{said}</label></fieldset>'
    asks, shape = ("in the notation", "A[I_X, J]") if check.kind == "notation" else _number(check)
    return (
        f'<p class="answer-line"><label for="{ident}">Your answer '
        f'<span class="answer-unit">{escape(asks)}</span></label>'
        f'<input type="text" id="{ident}" name="answer" spellcheck="false" autocapitalize="off" '
        f'placeholder="{escape(shape)}"></p>'
    )


def _number(check: Check) -> tuple[str, str]:
    """Return the label of a number field, and an example of its format."""
    shapes = {"s": "such as 1.5 ms", "B": "such as 1.5 MB", "bytes": "such as 1.5 MB"}
    return _asked(check.unit), shapes.get(
        check.unit, "such as 64" if _is_count(check.unit) else "such as 1.5e6"
    )


def _is_count(unit: str) -> bool:
    return unit.isalpha() and unit != "FLOPs"


def _asked(unit: str) -> str:
    """What a number field asks for: a number with a unit, a count, or a plain number."""
    units = {
        "s": "in seconds, or with a unit",
        "B": "in bytes, or with a unit",
        "B/s": "in bytes/s, or with a unit",
    }
    units |= {
        "FLOP": "in FLOPs",
        "FLOP/B": "in FLOPs per byte",
        "FLOP/s": "in FLOPs/s",
        "USD": "in US dollars",
    }
    if not unit:
        return "as a plain number"
    return units.get(unit) or (f"as a number of {unit}" if _is_count(unit) else f"in {unit}")


def shown(env: BuildEnvironment) -> dict[str, list[str]]:
    """Return the keys of the exercises on each page."""
    return page_data(env, "exercises")


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("exercises", Exercises)
