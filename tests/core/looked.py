"""What is seen of an explorer? What the tests of its laws look for in a view."""

from scalingbook_lib.reader.explorers.view import Chart, Curve


def panel(view, kind, at=0):
    """The first, second ... panel of a kind."""
    return [p for p in view.panels if isinstance(p, kind)][at]


def curve(view, label):
    """The curve of that label, in whichever chart it is."""
    charts = [p for p in view.panels if isinstance(p, Chart)]
    return next(m for p in charts for m in p.marks if isinstance(m, Curve) and m.label == label)


def readout(view, label):
    """The number of that label."""
    return next(r.value for r in view.readouts if r.label == label)


def values(control):
    """Where a control starts, then its options or its ends."""
    options = getattr(control, "options", None)
    ends = options or (getattr(control, "low", False), getattr(control, "high", True))
    return list(dict.fromkeys([control.start or ends[0], *ends]))


def every_control_changes_something(explorer):
    """No control is for nothing."""
    start = explorer.paint({})
    for name, control in explorer.controls.items():
        others = [explorer.paint({name: control.position(v)}) for v in values(control)[1:]]
        assert any((p.figure, p.readouts) != (start.figure, start.readouts) for p in others), name
