"""The explorers of the chapter on comparing accelerators, in their order."""

from scalingbook_book.chapters.machines.explorers import experts, pinned, sheets

EXPLORERS = (
    sheets.UNMASK,
    sheets.SIX,
    experts.BALANCE,
    experts.TURNS,
    experts.BUBBLE,
    pinned.PINNED,
)
