"""Translators get a catalog for each page, which keeps numbers, formulas and references."""

import re
import shutil

import pytest

from tools.environment import ROOT
from web import site

PAGE = """\
# Sums

Two *and* two is $2+2$, in version {{ version }} of the [library](#the-library).

Table: Sums

| sum | value |
|---|---|
| of two | four |

```python
two = 2  # code is not translated
```

## The library

It is small.
"""


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """The messages of each page of a book of two pages."""
    book = tmp_path_factory.mktemp("book")
    for name in ("_config.yml", "references.bib"):
        shutil.copy(ROOT / name, book)
    (book / "_toc.yml").write_text("format: jb-book\nroot: first\nchapters:\n- file: second\n")
    (book / "first.md").write_text(PAGE, encoding="utf-8")
    (book / "second.md").write_text("# More sums\n\nThree and one.\n", encoding="utf-8")
    (book / "out" / "gettext").mkdir(parents=True)
    (book / "out" / "gettext" / "old.pot").touch()
    made = site.catalogs(book, book / "out")
    return {
        path.stem: re.findall(r'^msgid "(.+)"$', path.read_text(), re.MULTILINE)
        for path in made.glob("*.pot")
    }


def test_each_page_has_a_catalog_and_no_other_stays(messages):
    assert messages.keys() == {"first", "second"}
    assert messages["second"] == ["More sums", "Three and one."]


def test_a_message_keeps_markup_and_formulas(messages):
    (paragraph,) = (one for one in messages["first"] if one.startswith("Two"))
    assert paragraph.startswith("Two *and* two is $2+2$, in version ")
    assert {"Sums", "of two", "four", "It is small."} <= set(messages["first"])


def test_code_is_not_translated(messages):
    assert not any("two = 2" in one for one in messages["first"])
