"""The tables and values of `launch`: what was read, assumed and not used, and the changes that would help."""

from collections.abc import Sequence

from scalingbook_cli.answer import TextTable
from scalingbook_lib.launch import Account, ServingLaunch, TrainingLaunch, emit, table
from scalingbook_lib.launch.changes import LEAST_GAIN, ServingChange, TrainingChange
from scalingbook_lib.launch.emit import Emission
from scalingbook_lib.units import count, percent, si
from scalingbook_lib.words import pluralize

type Launch = TrainingLaunch | ServingLaunch


def launch_tables(one: Launch, binds: str = "") -> tuple[TextTable, ...]:
    """The launch, its flags that were used, the assumptions, and the flags that were not used."""
    account = one.account
    found = [_launch(one, binds), _used(account), _assumed(account), _unused(account), _unknown(account)]
    return tuple(each for each in found if each.rows)


def _launch(one: Launch, binds: str) -> TextTable:
    rows = [("model", one.model.name), ("machine", one.machine.name)]
    if isinstance(one, TrainingLaunch):
        plan, sequences = one.plan, pluralize(one.batch, "sequence")
        rows += [
            ("batch", f"{sequences} of {one.T:,} tokens, {count(one.batch * one.T)} tokens"),
            ("each data-parallel rank", f"{one.accumulation:,} × {plan.microbatch:,} sequences"),
            ("pods", f"{plan.dcn:,}") if plan.dcn > 1 else ("", ""),
            ("dtypes", _dtypes(one)),
        ]
    else:
        caps = [f"{one.max_sequences:,} sequences"] if one.max_sequences else []
        caps += [f"{one.max_length:,} tokens each"] if one.max_length else []
        rows += [
            ("replicas", f"{one.replicas:,}"),
            ("caps of a replica", ", ".join(caps) or "none"),
            ("batched tokens of a step", f"{one.chunk:,}"),
            ("memory fraction", f"{one.fraction:g} of {one.rule.of}"),
            ("dtypes", _serving_dtypes(one)),
        ]
    if binds:
        rows.append(("bound by", binds))
    title = f"{table(one.launcher).name} launch"
    return TextTable(title, ("", ""), tuple(row for row in rows if row[0]), words=(0, 1))


def _dtypes(one: TrainingLaunch) -> str:
    plan = one.plan
    told = (
        f"weights {plan.weights}, matmuls {plan.compute}, gradients {plan.gradients}, moments {plan.moments}"
    )
    return f"{told}, master {plan.master}" if plan.master else told


def _serving_dtypes(one: ServingLaunch) -> str:
    layout = one.layout
    experts = f", experts {layout.experts}" if layout.experts else ""
    return f"weights {layout.weights}{experts}, KV cache {layout.kv}, matmuls {layout.compute}"


def _used(account: Account) -> TextTable:
    rows = tuple((one.concept, one.flag, _short(one.value), one.where) for one in account.used)
    return TextTable("Flags that were used", ("concept", "flag", "value", "where"), rows, words=(0, 1, 2, 3))


def _assumed(account: Account) -> TextTable:
    rows = [(f"{one.flag} = {one.value} by default ({one.version})",) for one in account.defaults]
    rows += [(sentence,) for sentence in account.assumed]
    return TextTable("Assumed", ("",), tuple(rows))


def _unused(account: Account) -> TextTable:
    rows = tuple(
        (one.flag, _short(one.value), one.where, ", ".join(e for e in one.effect if e != "results"), one.why)
        for one in account.unused
    )
    columns = ("flag", "value", "where", "changes", "why")
    return TextTable("Not used, although they change time or memory", columns, rows, words=(0, 1, 2, 3, 4))


def _unknown(account: Account) -> TextTable:
    rows = tuple((one.name, _short(one.text), one.where) for one in account.unknown)
    title = "Unknown flags, which may change anything"
    return TextTable(title, ("flag", "value", "where"), rows, words=(0, 1, 2))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 24 else f"{text[:21]}..."


_HELP, _FIT = "Changes that would help most", "Changes that would make it fit"


def _no_change(what: str, fits: bool, launcher: str) -> TextTable:
    told = f"No single change of the launch is predicted to improve the {what} by {percent(LEAST_GAIN)}."
    rows = [(told if fits else "No single change of the launch is predicted to make it fit.",)]
    for command, known in (("plan", emit.TRAINING), ("serve", emit.SERVING)):
        if launcher in known:
            rows.append((f"`scalingbook {command} ... --emit {launcher}` searches all of them.",))
    return TextTable(_HELP if fits else _FIT, ("",), tuple(rows))


def training_changes(found: Sequence[TrainingChange], fits: bool, launcher: str) -> tuple[TextTable, ...]:
    """The changes, their step time and memory; what one would write for them."""
    if not found:
        return (_no_change("step time", fits, launcher),)
    rows = []
    for one in found:
        flags = "\n".join(one.flags)
        step = one.step
        numbers = si(step.total_s, "s"), f"{-one.gain:+.0%}", si(step.memory.total, "B")
        rows.append((one.what, flags, *numbers))
    columns = ("change", "flags", "step time", "", "memory")
    title = _HELP if fits else f"{_FIT}, or nearly"
    shown = TextTable(title, columns, tuple(rows), words=(0, 1))
    return (shown if any(one.flags for one in found) else shown.without("flags"),)


def training_change_values(found: Sequence[TrainingChange]) -> list[dict[str, object]]:
    """The same for JSON."""
    return [
        {
            "change": one.what,
            "flags": list(one.flags),
            "step_time_s": one.step.total_s,
            "gain": one.gain,
            "memory_bytes": one.step.memory.total,
        }
        for one in found
    ]


def serving_changes(found: Sequence[ServingChange], fits: bool, launcher: str) -> tuple[TextTable, ...]:
    """The changes, with what they do to throughput and latency."""
    if not found:
        return (_no_change("throughput or the ITL", fits, launcher),)
    rows = []
    for one in found:
        rate = si(one.launch.replicas * one.served.tokens_per_s, "tokens/s")
        sign = "+" if one.helps == "throughput" else "−"
        helped = (
            f"{count(int(one.served.slots))}"
            if one.gain is None
            else f"{one.helps} {sign}{percent(one.gain)}"
        )
        rows.append((one.what, "\n".join(one.flags), helped, si(one.served.itl_s, "s"), rate))
    columns = ("change", "flags", "helps" if fits else "batch size", "ITL", "output")
    return (TextTable(_HELP if fits else _FIT, columns, tuple(rows), words=(0, 1, 2) if fits else (0, 1)),)


def serving_change_values(found: Sequence[ServingChange]) -> list[dict[str, object]]:
    """The same for JSON."""
    return [
        {
            "change": one.what,
            "flags": list(one.flags),
            "helps": one.helps,
            "gain": one.gain,
            "ttft_s": one.served.ttft_s,
            "itl_s": one.served.itl_s,
            "output_tokens_per_s": one.launch.replicas * one.served.tokens_per_s,
        }
        for one in found
    ]


def account_values(one: Launch) -> dict[str, object]:
    """The account of the flags, for JSON."""
    account = one.account
    return {
        "launcher": one.launcher,
        "used": [
            {"concept": each.concept, "flag": each.flag, "value": each.value, "where": each.where}
            for each in account.used
        ],
        "defaults": [
            {"flag": each.flag, "value": each.value, "version": each.version} for each in account.defaults
        ],
        "assumed": list(account.assumed),
        "unused": [
            {
                "flag": each.flag,
                "value": each.value,
                "where": each.where,
                "changes": list(each.effect),
                "why": each.why,
            }
            for each in account.unused
        ],
        "unknown": [{"flag": each.name, "value": each.text, "where": each.where} for each in account.unknown],
    }


def emitted(found: Emission | None) -> tuple[TextTable, ...]:
    """The lines of a launch command, to be copied, and what it leaves open."""
    if found is None:
        return ()
    *lines, last = found.lines
    rows = [(f"{line} \\",) if n == 0 else (f"  {line} \\",) for n, line in enumerate(lines)]
    rows.append((f"  {last}",))
    shown = TextTable(f"Launch command for {table(found.launcher).name}", ("",), tuple(rows))
    notes = [(note,) for note in found.notes]
    notes += [
        (f"{field} is not expressed; it changes neither time nor memory.",) for field in found.not_expressed
    ]
    return (shown, TextTable("", ("",), tuple(notes))) if notes else (shown,)


def emitted_values(found: Emission | None) -> dict[str, object]:
    """The same for JSON; nothing without a launch command."""
    if found is None:
        return {}
    return {
        "emitted": {
            "launcher": found.launcher,
            "command": found.text,
            "not_expressed": list(found.not_expressed),
            "notes": list(found.notes),
        }
    }
