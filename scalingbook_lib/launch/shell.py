"""Reads a shell script or command line into commands and their words; it executes nothing.

Comments, quotes, continued lines, here-documents, and variables and arrays that the script itself sets are
followed. Every character keeps the number of the line it was written on, also through variables. Conditions
are not evaluated: of an `if`, the first branch counts. What only a shell can know (positional parameters,
the output of commands, variables from outside) stays as it is written and is listed as `unresolved`.

>>> script = read("TP=8\\nvllm serve m --tensor-parallel-size $TP  # a node\\n")
>>> [word.text for word in script.commands[0]], script.commands[0][-1].line
(['vllm', 'serve', 'm', '--tensor-parallel-size', '8'], 1)
"""

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from scalingbook_lib.launch import slurm
from scalingbook_lib.launch.settings import MOST_CHARACTERS, LaunchError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_DUPLICATED = re.compile(r">&[ \t]*(\d+|-)")  # 2>&1
_KEYWORDS = ("then", "do", "{", "}", "(", ")", "!", "time", "exec", "sudo", "nohup", "command")
_PREFIXES = ("export", "declare", "local", "readonly", "set")
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_MOST_NUMBER = 2**62


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command, with the line of each of its characters."""

    text: str
    lines: tuple[int, ...] = ()

    @property
    def line(self) -> int:
        """The line on which it begins."""
        return self.lines[0] if self.lines else 0

    def after(self, start: int) -> "Word":
        """The word without its first characters."""
        return Word(self.text[start:], self.lines[start:])

    def pieces(self) -> list["Word"]:
        """Its parts between white space, as an unquoted variable has them."""
        return [Word(m[0], self.lines[m.start() : m.end()]) for m in re.finditer(r"\S+", self.text)]


@dataclass(slots=True)
class Script:
    """The commands of a script, the files that it writes from here-documents, and what was not resolved."""

    commands: list[list[Word]] = field(default_factory=list)
    files: dict[str, Word] = field(default_factory=dict)
    unresolved: dict[str, int] = field(default_factory=dict)  # what, and its line
    conditions: list[int] = field(default_factory=list)  # lines of `if`
    variables: dict[str, list[Word]] = field(default_factory=dict)
    allocation: slurm.SlurmAllocation = slurm.NONE


def read(text: str) -> Script:
    """The commands of a script or of a single command line."""
    lines, line = [], 1
    for sign in text:
        lines.append(line)
        line += sign == "\n"
    allocation = slurm.read(text)
    script = Script(allocation=allocation)
    for name, value in allocation.variables():
        script.variables[name] = [Word(value, (allocation.line,) * len(value))]
    return _Scanner(Word(text, tuple(lines)), script).run()


def nested(word: Word, script: Script) -> Script:
    """The commands inside a word, as in `bash -c '...'`, with the variables of the script around it."""
    inner = Script(files=script.files, variables=dict(script.variables), unresolved=script.unresolved)
    return _Scanner(word, inner).run()


class _Scanner:
    """Goes through the characters once; `words` is the command so far."""

    def __init__(self, source: Word, script: Script) -> None:
        self.text, self.lines, self.script = source.text, source.lines, script
        self.at, self.spent = 0, 0
        self.words: list[Word] = []
        self.chars: list[str] = []
        self.origins: list[int] = []
        self.open = False  # whether a word has begun: '' is a word too
        self.array: str | None = None  # the array that is being written
        self.kept: list[Word] = []  # the words before it
        self.branches: list[bool] = []  # of each open `if`, whether its first branch is over
        self.heredocs: list[str] = []

    def run(self) -> Script:
        """All commands."""
        if len(self.text) > MOST_CHARACTERS:
            raise LaunchError(f"the command has more than {MOST_CHARACTERS:,} characters; give a shorter one")
        while self.at < len(self.text):
            self._step()
        self._end_command()
        return self.script

    def _step(self) -> None:
        sign = self.text[self.at]
        if sign == "\\":
            self._escape()
        elif sign == "'":
            self._single()
        elif sign == '"':
            self._double()
        elif sign in "$`":
            self._expand(quoted=False)
        elif sign == "#" and not self.open:
            self.at = self._find("\n", self.at)
        elif sign in " \t\r":
            self._end_word()
            self.at += 1
        elif self.array is not None and sign in ")\n":
            self._in_array(sign)
        elif sign == "(" and self._begins_array():
            self.at += 1
        elif sign in "\n;|&()":
            self._separator(sign)
        elif sign in "<>":
            self._redirect()
        else:
            self._add(sign)

    # characters and words

    def _add(self, sign: str, line: int | None = None) -> None:
        self.chars.append(sign)
        self.origins.append(self._line if line is None else line)
        self.open = True
        self.at += line is None

    @property
    def _line(self) -> int:
        return self.lines[self.at] if self.at < len(self.lines) else (self.lines[-1] if self.lines else 0)

    def _find(self, sign: str, start: int) -> int:
        found = self.text.find(sign, start)
        return len(self.text) if found < 0 else found

    def _end_word(self) -> None:
        if self.open:
            self.words.append(Word("".join(self.chars), tuple(self.origins)))
        self.chars, self.origins, self.open = [], [], False

    def _escape(self) -> None:
        if self.text[self.at + 1 : self.at + 3] == "\r\n":
            self.at += 3
        elif self.text[self.at + 1 : self.at + 2] == "\n":  # the line goes on
            self.at += 2
        else:
            self.at += 1
            if self.at < len(self.text):
                self._add(self.text[self.at])

    def _single(self) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise LaunchError(f"line {self._line}: a single quote is not closed; close it")
        self.open, self.at = True, self.at + 1
        while self.at < end:
            self._add(self.text[self.at])
        self.at += 1

    def _double(self) -> None:
        begun = self._line
        self.open, self.at = True, self.at + 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            sign, following = self.text[self.at], self.text[self.at + 1 : self.at + 2]
            if sign == "\\" and following == "\n":
                self.at += 2
            elif sign == "\\" and following and following in '"\\$`':
                self.at += 1
                self._add(self.text[self.at])
            elif sign in "$`":
                self._expand(quoted=True)
            else:
                self._add(sign)
        if self.at >= len(self.text):
            raise LaunchError(f"line {begun}: a double quote is not closed; close it")
        self.at += 1

    # variables

    def _expand(self, quoted: bool) -> None:
        start, line = self.at, self._line
        values = self._reference()
        if values is None:
            shown = self.text[start : self.at]
            self.script.unresolved.setdefault(shown.split("\n")[0][:60], line)
            values = [Word(shown, (line,) * len(shown))]
            quoted = True  # it is one word, whatever it says
        elif any(what in value.text for value in values for what in self.script.unresolved):
            quoted = True  # and so it stays behind a variable
        self.spent += sum(len(value.text) for value in values)
        if self.spent > MOST_CHARACTERS:
            raise LaunchError(
                f"line {line}: the variables expand to more than {MOST_CHARACTERS:,} characters; "
                "write them out"
            )
        if len(values) > 1 or not quoted:
            self._splice([piece for value in values for piece in ([value] if quoted else value.pieces())])
        else:
            for value in values:
                self._append(value)

    def _append(self, word: Word) -> None:
        self.chars.extend(word.text)
        self.origins.extend(word.lines)
        self.open = self.open or bool(word.text)

    def _splice(self, pieces: list[Word]) -> None:
        """Put the first piece at the end of the open word, and begin a word for each of the others."""
        for number, piece in enumerate(pieces):
            if number:
                self._end_word()
            self._append(piece)

    def _reference(self) -> list[Word] | None:
        """The value of the reference that begins here, behind which `at` then is; None if unresolved."""
        if self.text[self.at] == "`":
            self.at = min(self._find("`", self.at + 1) + 1, len(self.text))
            return None
        for begins, ends, meaning in (("$((", "))", self._arithmetic), ("$(", ")", None)):
            if self.text.startswith(begins, self.at):
                end = self._balanced(self.at + len(begins), len(ends))
                inner = self.text[self.at + len(begins) : end - len(ends)]
                self.at = end
                return meaning(inner) if meaning else None
        if self.text.startswith("${", self.at):
            end = self._find("}", self.at)
            inner = self.text[self.at + 2 : end]
            self.at = min(end + 1, len(self.text))
            return self._braced(inner)
        if match := _NAME.match(self.text, self.at + 1):
            self.at = match.end()
            return self.script.variables.get(match[0])
        self.at += 2 if self.text[self.at + 1 : self.at + 2].strip() else 1
        return None if self.text[self.at - 1] != "$" else [Word("$", (self._line,))]

    def _balanced(self, start: int, closing: int) -> int:
        """The place behind the brackets that close what begins at `start`."""
        depth, at = closing, start
        while at < len(self.text) and depth:
            depth += {"(": 1, ")": -1}.get(self.text[at], 0)
            at += 1
        return at

    def _braced(self, inner: str) -> list[Word] | None:
        match = _NAME.match(inner)
        if not match:
            return None
        name, rest = match[0], inner[match.end() :]
        known = self.script.variables.get(name)
        if rest in ("", "[@]", "[*]"):
            return known
        if rest[:2] in (":-", "-", ":=") or rest[:1] == "-":
            default = rest.lstrip(":").lstrip("-=")
            plain = default.strip("\"'")
            return known or (None if "$" in plain else [Word(plain, (self._line,) * len(plain))])
        return None

    def _arithmetic(self, inner: str) -> list[Word] | None:
        """The value of an integer expression of known variables."""

        def known(match: re.Match[str]) -> str:
            words = self.script.variables.get(match[0].strip("${}"))
            return words[0].text if words and len(words) == 1 else match[0]

        try:
            tree = ast.parse(re.sub(r"\$\{?\w+\}?|[A-Za-z_]\w*", known, inner).strip(), mode="eval")
            text = str(_integer(tree.body))
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
            return None
        return [Word(text, (self._line,) * len(text))]

    # arrays

    def _begins_array(self) -> bool:
        match = _ASSIGNMENT.fullmatch("".join(self.chars)) if self.open else None
        if match is None:
            return False
        self.array = match[0]
        self.chars, self.origins, self.open = [], [], False
        self.kept, self.words = self.words, []
        return True

    def _in_array(self, sign: str) -> None:
        self._end_word()
        self.at += 1
        if sign == ")" and (match := _ASSIGNMENT.fullmatch(self.array or "")):
            self._assign(match[1], self.words, more=bool(match[2]))
            self.words, self.array = self.kept, None

    # commands

    def _separator(self, sign: str) -> None:
        self._end_command()
        self.at += 1
        if sign == "\n" and self.heredocs:
            self._heredoc_text()

    def _redirect(self) -> None:
        if match := _HEREDOC.match(self.text, self.at):
            self._end_word()
            self.heredocs.append(match[2])
            self.at = match.end()
            return
        sign = self.text[self.at]
        if "".join(self.chars) in ("1", "2", "&"):
            self.chars, self.origins, self.open = [], [], False
        self._end_word()
        if match := _DUPLICATED.match(self.text, self.at):
            self.at = match.end()
            return
        while self.at < len(self.text) and self.text[self.at] in "<>&|":
            self.at += 1
        if sign == ">":
            self.words.append(Word(">", (self._line,)))

    def _heredoc_text(self) -> None:
        """The lines up to the delimiter, as a file if `cat > file` reads them."""
        target = self.script.commands[-1] if self.script.commands else []
        for delimiter in self.heredocs:
            match = re.compile(rf"^[ \t]*{delimiter}[ \t\r]*$", re.M).search(self.text, self.at)
            end = match.start() if match else len(self.text)
            names = [word.text for word in target]
            if ">" in names[:-1]:
                path = names[names.index(">") + 1]
                self.script.files[path] = Word(self.text[self.at : end], self.lines[self.at : end])
            self.at = match.end() if match else end
        self.heredocs = []

    def _end_command(self) -> None:
        self._end_word()
        words, self.words = self.words, []
        while words and words[0].text in _KEYWORDS:
            words = words[1:]
        if words and words[0].text in ("if", "elif", "else", "fi"):
            words = self._branch(words)
        while words:
            match = _ASSIGNMENT.match(words[0].text)
            if match is None:
                break
            self._assign(match[1], [words[0].after(match.end())], more=bool(match[2]))
            words = words[1:]
        if words and words[0].text in _PREFIXES:
            for word in words[1:]:
                if match := _ASSIGNMENT.match(word.text):
                    self._assign(match[1], [word.after(match.end())], more=bool(match[2]))
            return
        if words and not any(self.branches):
            self.script.commands.append(words)

    def _branch(self, words: list[Word]) -> list[Word]:
        kind = words[0].text
        if kind == "if":
            self.script.conditions.append(words[0].line)
            self.branches.append(False)
        elif kind == "fi":
            if self.branches:
                self.branches.pop()
        elif self.branches:
            self.branches[-1] = True
        return words[1:] if kind == "else" else []

    def _assign(self, name: str, values: list[Word], *, more: bool) -> None:
        known = self.script.variables.get(name)
        if any(self.branches) and known is not None:
            return
        if more and known is not None:
            values = [*known, *values]
        self.script.variables[name] = values


def _integer(node: ast.expr) -> int:
    """The value of an expression of whole numbers."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        value = int(node.value)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        value = _ARITHMETIC[type(node.op)](_integer(node.left), _integer(node.right))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = -_integer(node.operand)
    else:
        raise ValueError("no integer expression")
    if abs(value) > _MOST_NUMBER:
        raise ValueError("too large")
    return value
