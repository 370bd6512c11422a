"""A small book to try the tools on."""

import shutil

import pytest

from tools import notebooks
from tools.notebooks import Notebook

FRONT = """\
---
jupytext:
  formats: ipynb,md:myst
  text_representation:
    extension: .md
    format_name: myst
    format_version: 0.13
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
"""

CHAPTER = (
    FRONT
    + """
# Sums

Two and two:

```{code-cell} ipython3
2 + 2
```

+++

A cell whose code is hidden:

```{code-cell} ipython3
:tags: [hide-input]
print("four")
```
"""
)

SOLUTIONS = (
    FRONT
    + """
# Sums: exercises

First the imports.

```{code-cell} ipython3
from fractions import Fraction
def find(key): return lambda answer: "not answered yet" if answer is ... else "right"
class checks: find = staticmethod(find)
```

+++ {"exercise": "sums.two-halves"}

## 1. A half and a half

How much is $1/2 + 1/2$?

```{code-cell} ipython3
:tags: [solution]
:stub: "one line: a sum of two Fractions"
half = Fraction(1, 2)
one = half + half
```

+++ {"tags": ["solution"]}

Two halves are a whole.

```{code-cell} ipython3
checks.find("sums.two-halves")(one)
```

+++ {"exercise": "sums.halving"}

## 2. Halve it again

Here is a list:

```{code-cell} ipython3
halves = [1, 2, 4]
```

+++

Which comes next?

```{code-cell} ipython3
:tags: [solution]
last = halves[-1]
```

```{code-cell} ipython3
:tags: [solution]
:stub: a number
following = 2 * last
```

```{code-cell} ipython3
checks.find("sums.halving")(following)
```
"""
)


def written(folder):
    for name, text in (("chapters", CHAPTER), ("solutions", SOLUTIONS)):
        (folder / name).mkdir()
        (folder / name / "sums.md").write_text(text)
    (folder / "uv.lock").write_text("")
    return folder


@pytest.fixture
def book(tmp_path):
    """A book of one chapter with two exercises, not executed."""
    return written(tmp_path)


@pytest.fixture(scope="session")
def executed_once(tmp_path_factory):
    """The same book after every cell has run."""
    folder = written(tmp_path_factory.mktemp("book"))
    for name in ("chapters", "exercises"):
        notebooks.execute(Notebook(name, "sums", root=folder))
    return folder


@pytest.fixture
def executed(executed_once, tmp_path):
    """A copy of the executed book, to change."""
    return shutil.copytree(executed_once, tmp_path / "executed")
