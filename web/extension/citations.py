"""Citations: register the backend once, and print "et al." for a list of authors that ends in "and others".

sphinxcontrib-bibtex looks the backend up at every citation. It and pybtex abbreviate a list of three or more
authors, but print "others" of a BibTeX list as if it were a name.
"""

from collections.abc import Sequence
from typing import Any

from pybtex.backends import plaintext
from pybtex.database import Entry, Person
from pybtex.plugin import register_plugin
from pybtex.richtext import Tag
from pybtex.style.formatting.alpha import Style as AlphaStyle
from pybtex.style.names.plain import NameStyle as PlainNames
from pybtex.style.template import Node, names, sentence
from sphinx.application import Sphinx
from sphinxcontrib.bibtex.plugin import register_plugin as register_style
from sphinxcontrib.bibtex.style.names.last import LastNameStyle
from sphinxcontrib.bibtex.style.referencing import PersonStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle
from sphinxcontrib.bibtex.style.template import author_or_editor_or_title

OTHERS = Person("others")


class LastNames(LastNameStyle):
    """The names of a citation."""

    def format(self, person: Person, abbr: bool = True) -> Any:
        """Return the last name of a person."""
        return Tag("em", "et al.") if person == OTHERS else super().format(person, abbr)


class ListedNames(PlainNames):
    """The names of an entry of the bibliography."""

    def format(self, person: Person, abbr: bool = False) -> Any:
        """Return the name of a person."""
        return "et al." if person == OTHERS else super().format(person, abbr)


class Persons(PersonStyle):
    """The authors of a citation, all or the first of them."""

    def __post_init__(self) -> None:
        """Replace the names, which are otherwise looked up as a plug-in."""
        self.style_plugin = LastNames()

    def author_or_editor_or_title(self, full: bool) -> Node:
        """Return the authors, or the editors or the title of a work that has none."""
        told = {"sep": self.sep, "last_sep": self.last_sep, "other": None if full else self.other}

        def formatted(_: Sequence[Any], data: dict[str, Any], **__: Any) -> Any:
            sep2 = " " if _abbreviated(data["entry"]) else self.sep2
            return author_or_editor_or_title(**told, sep2=sep2).format_data(data)

        return Node("author_or_editor_or_title", formatted)


class References(AuthorYearReferenceStyle):
    """Citations by author and year."""

    def __post_init__(self) -> None:
        """Use the names above."""
        self.person = Persons()
        super().__post_init__()


class Bibliography(AlphaStyle):
    """The list of all works."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Use the names above."""
        super().__init__(*arguments, **named)
        self.format_name = ListedNames().format

    def format_names(self, role: str, as_sentence: bool = True) -> Node:
        """Return the names of all authors or editors."""

        def formatted(_: Sequence[Any], data: dict[str, Any], **__: Any) -> Any:
            cut = _abbreviated(data["entry"], role)
            separators = {"sep2": " ", "last_sep": ", "} if cut else {"sep2": " and ", "last_sep": ", and "}
            return names(role, sep=", ", **separators).format_data(data)

        node = Node("names", formatted)
        return sentence[node] if as_sentence else node


def _abbreviated(entry: Entry, role: str = "author") -> bool:
    """Whether the list of persons ends in "and others"."""
    persons = (entry.persons or {}).get(role, [])
    return bool(persons) and persons[-1] == OTHERS


def setup(app: Sphinx) -> None:
    """Register the plug-ins, whose lookup among all installed packages would take a sixth of a build."""
    register_plugin("pybtex.backends", "plaintext", plaintext.Backend, force=True)
    register_plugin("pybtex.style.formatting", "alpha", Bibliography, force=True)
    register_style("sphinxcontrib.bibtex.style.referencing", "author_year", References, force=True)
