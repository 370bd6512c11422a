"""Recognizes a Git LFS pointer: the three lines that a checkout without Git LFS has in place of a large file.

>>> is_pointer("version https://git-lfs.github.com/spec/v1\\noid sha256:4d7a...\\nsize 89012\\n")
True
"""

_FIRST = "version https://git-lfs.github.com/spec/"


def is_pointer(content: str | bytes) -> bool:
    """Whether this is a Git LFS pointer and not the file that it stands for."""
    start = content[:200]
    return (start.decode(errors="replace") if isinstance(start, bytes) else start).lstrip().startswith(_FIRST)


def refusal(what: str) -> str:
    """The sentence that refuses `what`, a pointer, and says how to get the file itself."""
    return (
        f"{what} is a Git LFS pointer, three lines that stand for the file; "
        "write `git lfs install && git lfs pull` in the repository to get the file itself"
    )
