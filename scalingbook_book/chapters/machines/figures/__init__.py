"""The figures of the chapter on comparing accelerators, in their order."""

from scalingbook_book.chapters.machines.figures import exchange, sheets, token

FIGURES = (
    sheets.six,
    sheets.ridges,
    sheets.domains,
    exchange.hidden,
    exchange.latency,
    exchange.turns,
    exchange.waves,
    token.token,
)
