"""Show the flags of several launchers for one subject as a table, from the data of the launch reader."""

from dataclasses import dataclass
from html import escape

from scalingbook_book.show.tables import Table
from scalingbook_lib.launch.flags import LAUNCHERS
from scalingbook_lib.launch.subjects import FlagComparison, Switch, comparison
from scalingbook_lib.words import join_and

NONE = "—"
FIRST, LAST = "in this book", "version, date"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class FlagTable(Table):
    """A table of flags: as text, every cell is plain; as HTML, flags are code and can break between words."""

    marked: tuple[tuple[str, ...], ...]

    def _repr_html_(self) -> str:
        return Table(self.title, self.heads, self.marked, self.summary)._repr_html_()


def launcher_flags(subject: str, kind: str, *, title: str, folded: bool = False) -> FlagTable:
    """The flags for a subject, with one column per launcher.

    `subject` is `training`, `inference`, `lowprecision` or `profiling`. `kind` chooses the launchers of
    `training` or those of `serving`. If the table is `folded`, a reader has to
    open it.
    """
    found = comparison(subject, kind)
    plain = [
        (line.term, *("; ".join(map(str, some)) or NONE for some in line.switches.values()))
        for line in found.lines
    ]
    marked = [
        (escape(line.term), *("<br>".join(map(_marked, some)) or NONE for some in line.switches.values()))
        for line in found.lines
    ]
    dates = (LAST, *(_dates(found, launcher) for launcher in found.launchers))
    heads = (FIRST, *(LAUNCHERS[launcher] for launcher in found.launchers))
    return FlagTable(
        title=title,
        heads=heads,
        rows=(*plain, dates),
        summary=f"Show the flags of {join_and(heads[1:])}" if folded else "",
        marked=(*marked, dates),
    )


def _marked(one: Switch) -> str:
    if one.flag is None:
        return escape(one.note)
    where = f"{one.flag.source}, {one.flag.version}, {one.flag.as_of}"
    if one.flag.default:
        where += f"; default {one.flag.default}"
    code = escape(one.setting)
    for sign in "._=":
        code = code.replace(sign, f"{sign}<wbr>")
    return f'<code title="{escape(where)}">{code}</code> {escape(one.note)}'.strip()


def _dates(found: FlagComparison, launcher: str) -> str:
    return "; ".join(f"{version}, {as_of}" for version, as_of in found.sources(launcher))
