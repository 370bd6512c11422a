"""What a launcher's reader asks of the settings: values by key, and an account of what was and was not used.

A value comes from the last setting of a flag, or from the default in the table. Whatever a reader does not
ask for, or says that it cannot express, is listed as unused if it changes time or memory.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scalingbook_lib.launch.flags import Flag, Table, canonical, meanings
from scalingbook_lib.launch.settings import LaunchError, Setting
from scalingbook_lib.units import DType

_SILENT = {"1", "-1", "0", "false", "none", "None", "", "remat", "auto"}
"""Defaults that are not worth a line: degrees of 1, and what is off."""


@dataclass(frozen=True, slots=True)
class Used:
    """A flag whose value the answer rests on; `where` is "" for a default, and `version` says of what."""

    concept: str
    flag: str
    value: str
    where: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Unused:
    """A flag that changes time or memory and that the answer does not use, and why."""

    flag: str
    value: str
    where: str
    effect: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Account:
    """Everything that was read: used flags, defaults, assumptions, unused flags and unknown ones."""

    used: tuple[Used, ...]
    defaults: tuple[Used, ...]
    assumed: tuple[str, ...]
    unused: tuple[Unused, ...]
    unknown: tuple[Setting, ...]


_NOTHING = ("", "none")
_OFF = (*_NOTHING, "0", "-1", "1", "false")
"""Defaults that an empty setting of a file leaves as they are."""
NOT_EXPRESSED = "not part of the prediction"


class Reading:
    """The settings of one launch, asked by key."""

    def __init__(
        self,
        table: Table,
        settings: Iterable[Setting],
        notes: Iterable[str] = (),
        absent: Iterable[Setting] = (),
    ) -> None:
        self.table = table
        self.absent = tuple(absent)  # files of settings that are not here
        self.settings: dict[str, Setting] = {}  # by the flag's name in the table; the last one counts
        self.unknown: dict[str, Setting] = {}
        self.inner: dict[str, tuple[Flag, Setting]] = {}  # of a flag with a JSON value
        self.asked: dict[str, bool] = {}  # by key, whether it was given
        self.assumed = list(notes)
        self.refused: dict[str, str] = {}  # by flag, why it is not expressed
        self.lacking: set[str] = set()  # concepts that this launch has nothing of
        for setting in settings:
            self._take(setting)

    def _take(self, setting: Setting) -> None:
        flag = self.table.find(setting.name)
        name = canonical(setting.name)
        positive = self.table.find(affirmed) if flag is None and (affirmed := _affirmed(name)) else None
        if positive and positive.type in ("flag", "bool"):
            flag = positive
            off = setting.value in (True, "true", "True")
            setting = Setting(setting.name, not off, setting.line, setting.file)
        outer = self.table.find(setting.name.partition(".")[0]) if flag is None and "." in name else None
        if outer and outer.type == "json":
            self.inner[name] = outer, setting
        elif flag is None:
            self.unknown[name] = setting
        else:
            self.settings.pop(flag.flag, None)
            self.settings[flag.flag] = setting

    def given(self, key: str) -> bool:
        """Whether a flag with that key was set, to something other than None."""
        return any(
            row.key == key and row.flag in self.settings and self.settings[row.flag].value is not None
            for row in self.table.rows
        )

    def setting(self, key: str) -> Setting:
        """The setting of a key, or its default as a setting."""
        flag = self._flag(key)
        return self.settings.get(flag.flag) or Setting(flag.flag, flag.default)

    def _flag(self, key: str) -> Flag:
        rows = [row for row in self.table.rows if row.key == key]
        return next((row for row in rows if row.flag in self.settings), rows[0])

    def get(self, key: str) -> object:
        """The value of a key in the type of its flag; None where neither a setting nor a default says it."""
        flag = self._flag(key)
        setting = self.settings.get(flag.flag)
        self.asked[key] = setting is not None
        if setting is None and flag.default in ("None", ""):
            return None
        found = flag.read(setting or Setting(f"{flag.flag} (default)", flag.default))
        return None if isinstance(found, str) and found.lower() in ("none", "") else found

    def whole(self, key: str, least: int = 1) -> int:
        """A whole number of at least `least`; a LaunchError where it is missing or smaller."""
        found = self.get(key)
        if found is None:
            raise LaunchError(
                f"the command does not set {self._flag(key).flag}; add it, as in {self.example(key)}"
            )
        assert isinstance(found, int)
        if found < least:
            raise self.setting(key).refuse(f"is below {least}", f"write at least {least}")
        return found

    def maybe(self, key: str, least: int = 1) -> int | None:
        """A whole number, or None where nothing says it."""
        return None if self.get(key) is None else self.whole(key, least)

    def dtype(self, key: str, otherwise: DType) -> DType:
        """A data type; `otherwise` where nothing says it, or where the setting is empty, "none" or "auto"."""
        found = self.get(key) or otherwise
        assert isinstance(found, DType)
        return found

    def number(self, key: str) -> float:
        """A number."""
        found = self.get(key)
        return float(found) if isinstance(found, int | float) else 0.0

    def on(self, key: str) -> bool:
        """Whether a switch is on."""
        return bool(self.get(key))

    def word(self, key: str) -> str:
        """A text; "" where nothing says it."""
        found = self.get(key)
        return "" if found is None else str(found)

    def meaning(self, key: str, *, known: Mapping[str, str] | None = None) -> str:
        """What the value of a key means here, from values.csv; a LaunchError lists the known ones."""
        word = self.word(key)
        table = meanings(self.table.launcher, key) if known is None else known
        if not word:
            return ""
        for value, means in table.items():
            if value.lower() == word.lower():
                return means
        raise self.setting(key).refuse("is not known here", f"write one of {', '.join(table)}")

    def refuse(self, key: str, rule: str, instead: str) -> LaunchError:
        """The error for a key's setting."""
        return self.setting(key).refuse(rule, instead)

    def unexpressed(self, key: str, why: str) -> None:
        """Say that the prediction does not have what a flag says."""
        if self.given(key):
            self.refused[self._flag(key).flag] = why

    def idle(self, *keys: str) -> None:
        """Say that flags have no effect in this launch, such as a pipeline's schedule without stages."""
        for key in keys:
            if self.given(key):
                self.asked[key] = True

    def lacks(self, *concepts: str) -> None:
        """Say that a launch has nothing of these concepts, such as experts, and their defaults no effect."""
        self.lacking |= set(concepts)

    def inert(self, group: str, because: str) -> None:
        """Leave out the flags of a group, which have no effect in this launch, and say why."""
        found = [name for name in self.settings if name.startswith(f"{group}.")]
        for name in found:
            del self.settings[name]
        if found:
            self.assume(f"{group} has no effect {because}.")

    def assume(self, sentence: str) -> None:
        """Add an assumption to the account."""
        if sentence not in self.assumed:
            self.assumed.append(sentence)

    def example(self, key: str) -> str:
        """How one writes a flag of this launcher."""
        flag = self._flag(key)
        value = {"int": "8", "float": "0.9", "dtype": "bfloat16"}.get(flag.type, "...")
        return f"{flag.flag} {value}" if flag.flag.startswith("-") else f"{flag.flag}={value}"

    def _assume_defaults(self) -> None:
        """Say which defaults the prediction does not agree with, where the command leaves them."""
        for row in self.table.rows:
            if row.flag not in self.settings and row.concept not in self.lacking and _conflicts(row):
                counted = f"{row.flag} is {row.default} by default ({row.version})"
                why = f": {row.note}" if row.note else ""
                self.assume(f"{counted}, and the prediction is for {' or '.join(row.agrees)}{why}.")

    def account(self) -> Account:
        """All that was used, assumed, unused and unknown."""
        self._assume_defaults()
        used, defaults, unused = [], [], []
        for row in self.table.rows:
            setting = self.settings.get(row.flag)
            asked = row.key in self.asked and self._flag(row.key) is row if row.key else False
            if setting is None:
                if asked and row.counts and row.default not in _SILENT:
                    defaults.append(Used(row.concept, row.flag, row.default, "", row.version))
                continue
            why = self.refused.get(row.flag)
            if asked and not why:
                used.append(Used(row.concept, row.flag, setting.text, setting.where))
            elif row.counts and (why or not _agrees(row, setting)):
                reason = why or row.note or NOT_EXPRESSED
                unused.append(Unused(row.flag, setting.text, setting.where, row.effect, reason))
        for outer, setting in self.inner.values():
            if outer.counts:
                unused.append(
                    Unused(
                        setting.name, setting.text, setting.where, outer.effect, outer.note or NOT_EXPRESSED
                    )
                )
        for setting in self.absent:
            unused.append(
                Unused(setting.name, setting.text, setting.where, ("time", "memory"), "the file is not here")
            )
        unknown = tuple(self.unknown.values())
        return Account(tuple(used), tuple(defaults), tuple(self.assumed), tuple(unused), unknown)


def _affirmed(name: str) -> str:
    """The switch that "no_enable" or, in torchtitan, "compile.no_enable" turns off; "" for other names."""
    group, dot, last = name.rpartition(".")
    if last.startswith("no_"):
        return f"{group}{dot}{last[3:]}"
    return name[3:] if name.startswith("no_") else ""


def _agrees(row: Flag, setting: Setting) -> bool:
    """Whether the prediction holds for this value although it does not use the flag."""
    text, default = setting.text.lower(), row.default.lower()
    if text == "auto" or (text in _NOTHING and default in _OFF):  # which leaves the flag at its default
        text = default
    # without other values, a flag that is not asked for agrees at its default alone
    held = {value.lower() for value in row.agrees or (default,)}
    return text in held or (text in _NOTHING and default in _NOTHING)


def _conflicts(row: Flag) -> bool:
    """Whether the prediction is for another value than the default of a flag, where the table has one."""
    return bool(row.counts and row.agrees and row.default.lower() not in _NOTHING) and not _agrees(
        row, Setting(row.flag, row.default)
    )
