"""What is seen of an explorer? What the tests of its laws look for in a view."""

from scalingbook_book.reader.explorers.view import Chart, Curve


def panel(view, kind, at=0):
    """The first, second ... panel of a kind."""
    return panels(view, kind)[at]


def panels(view, kind):
    """All panels of a kind."""
    return [p for p in view.panels if isinstance(p, kind)]


def marks(view, kind):
    """All marks of a kind, of whichever chart."""
    return [m for p in panels(view, Chart) for m in p.marks if isinstance(m, kind)]


def curve(view, label):
    """The curve of that label, in whichever chart it is."""
    return next(m for m in marks(view, Curve) if m.label == label)


def readout(view, label):
    """The number of that label."""
    return next(r.value for r in view.readouts if r.label == label)


def values(control):
    """Where a control starts, then its options or its ends."""
    options = getattr(control, "options", None)
    ends = options or (getattr(control, "low", False), getattr(control, "high", True))
    return list(dict.fromkeys([control.start or ends[0], *ends]))
