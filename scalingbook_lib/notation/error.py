"""Errors in the notation: the broken rule, its position in the text, and what to write instead."""

LONGEST_SHOWN = 120

# Every rule by its code: how a text breaks it, and what to write instead.
RULES = {
    # any text
    "not-text": ("this is not text", "write it in quotes, as in 'A[I_X, J]'"),
    "too-long": ("this has more than {most:,} characters", "write a shorter text"),
    "unknown-character": (
        "{found} has no meaning in the notation",
        "write letters A to z, [ ], commas, _, {{ }}, · and ->",
    ),
    "unclosed": ("this {sign} is never closed", "add its {other}"),
    "unopened": ("this {sign} closes nothing", "remove it, or open it with {other}"),
    "mismatched": ("{opened} is closed by {sign}", "write {other} instead of {sign}"),
    # one array
    "missing-array": ("an array is missing", "write one, as in A[I_X, J]"),
    "missing-name": ("{found} is where an array's name should be", "write a name first, as in A[I, J]"),
    "array-name": ("{found} cannot name an array", "start with a letter, as in A or W_in"),
    "no-brackets": ("{name} has no dimensions in square brackets", "write them as in {name}[I_X, J]"),
    "one-array": ("{found} follows the array", "write one array alone, as in A[I_X, J]"),
    # its dimensions
    "empty-dims": ("an array needs a dimension", "write one, as in {name}[I]"),
    "missing-dim": ("a dimension is missing before {found}", "write a letter there, as in A[I, J]"),
    "no-comma": ("{found} follows dimension {name}", "separate dimensions by commas, as in A[I_X, J]"),
    "dim-is-size": (
        "{found} is a size, not a dimension",
        "write a letter, as in A[I], and give its size separately",
    ),
    "dim-name": ("{found} cannot name a dimension", "write a letter, as in I"),
    "run-together": (
        "{found} has several capitals, and a dimension has one",
        "write {split} to shard {first} over {axes}, or a comma between dimensions",
    ),
    "duplicate-dim": ("dimension {name} appears twice in {array}", "give each dimension its own letter"),
    "unknown-dim": ("there is no dimension {name}", "choose from {known}"),
    # the mesh axes that shard them
    "no-underscore": ("{{ follows {name} directly", "put an underscore between, as in {name}_{{XY}}"),
    "empty-subscript": ("an underscore without a mesh axis", "write the axis, as in I_X, or leave out the _"),
    "axis-name": (
        "{found} cannot name a mesh axis",
        "write one capital letter for each axis, as in I_XY, or words, as in I_data",
    ),
    "axis-repeated": ("mesh axis {axis} appears twice on {name}", "write each axis once, as in {example}"),
    "axis-twice": (
        "mesh axis {axis} already shards {first}, so it cannot shard {name} too",
        "leave {axis} on one of them, as in {example}",
    ),
    "unknown-axis": ("the mesh {mesh} has no axis {axis}", "choose from {known}, or add {axis} to the mesh"),
    # partial sums
    "partial-marker": ("{found} cannot appear in a partial sum", "write U and its mesh axes, as in {{U_X}}"),
    "empty-partial": ("a partial sum without a mesh axis", "write the axis, as in {{U_X}}, or leave it out"),
    "partial-twice": (
        "mesh axis {axis} appears twice in the partial sum",
        "write it once, as in {{U_{axis}}}",
    ),
    "split-and-partial": (
        "mesh axis {axis} shards {name}, so the array cannot also be a partial sum over {axis}",
        "keep {name}_{axis} or {{U_{axis}}}, not both",
    ),
    # matmuls
    "no-arrow": ("there is no result", "write it after an arrow, as in -> C[I, K]"),
    "two-arrows": ("there are two arrows", "write one result, as in A[I, J] · B[J, K] -> C[I, K]"),
    "equals": ("= is not used in a product", "write -> before the result, as in -> C[I, K]"),
    "one-operand": ("there is nothing to multiply {name} by", "write two arrays, as in A[I, J] · B[J, K]"),
    "three-operands": ("{found} follows two operands", "write two, as in A[I, J] · B[J, K] -> C[I, K]"),
    "one-result": ("{found} follows the result", "end with one array, as in -> C[I, K]"),
    "result-only-dim": (
        "dimension {name} of {array} is in neither operand",
        "remove {name} from {array}, or give it to an operand",
    ),
    "lost-dim": (
        "dimension {name} is in {array} only, so the matmul does not sum over it",
        "keep {name} in {result}, or give it to both operands",
    ),
    # meshes and sizes
    "empty-mesh": ("a mesh needs an axis", "write one, as in X4 Y2"),
    "mesh-syntax": ("{found} is not an axis with its size", "write a mesh as in X4 Y2 or X=4, Y=2"),
    "mesh-axis": ("axis {found} is neither one capital letter nor a lowercase word", "write X4 or data=4"),
    "mesh-axis-twice": ("the mesh has two axes {name}", "give each axis its own letter"),
    "too-many-devices": ("{devices:,} devices are too many to list", "use at most {most:,}"),
    "missing-size": ("dimension {name} has no size", "give it, as in {name}=1024"),
    "not-whole": ("the size of {name} is {size}, not a whole number", "write one, as in {name}=4"),
    "not-positive": ("the size of {name} is less than 1", "write a positive number, as in {name}=4"),
    "too-large": ("the size of {name} is above {most:,}", "write a smaller number"),
}


class NotationError(ValueError):
    """One illegal use of the notation.

    `rule` is the code of the broken rule, a key of `RULES`; `read` is the text that was read; `span` is the
    range of characters that breaks the rule, so that a page can underline it (None if the error is not in a
    text). `part` names that range in the array or matmul (`dim.1`, `b.axis.0`) for callers that know its
    position.
    """

    def __init__(
        self,
        rule: str,
        read: str,
        broke: str,
        write: str,
        span: tuple[int, int] | None = None,
        *,
        part: str = "",
    ) -> None:
        super().__init__(
            rule, read, broke, write, span
        )  # the arguments of a copied exception; `part` is restored as its state
        self.rule, self.read, self.broke, self.write = rule, read, broke, write
        self.span, self.part = span, part

    def __str__(self) -> str:
        return f"{printable(self.read)}: {self.broke}; {self.write}"

    def at(self, read: str, span: tuple[int, int]) -> "NotationError":
        """The same error, located in the text that was read."""
        return NotationError(self.rule, read, self.broke, self.write, span, part=self.part)


def broken(
    rule: str, read: str, span: tuple[int, int] | None = None, part: str = "", /, **words: object
) -> NotationError:
    """The error for that rule of `RULES`, with its sentences filled in from `words`."""
    broke, write = RULES[rule]
    return NotationError(rule, read, broke.format(**words), write.format(**words), span, part=part)


def printable(text: str) -> str:
    """The text on one line, printable and shortened, for use in a message."""
    text = text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
    return text if text and text.isprintable() else ascii(text)
