"""A small book to try the tools on."""

import pytest

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

+++ {"exercise": "sums.1"}

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
checks.find("sums.1")(one)
```

+++ {"exercise": "sums.2"}

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
checks.find("sums.2")(following)
```
"""
)


@pytest.fixture
def book(tmp_path):
    """A book of one chapter with two exercises."""
    for folder, text in (("chapters", CHAPTER), ("solutions", SOLUTIONS)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sums.md").write_text(text)
    (tmp_path / "uv.lock").write_text("")
    return tmp_path
