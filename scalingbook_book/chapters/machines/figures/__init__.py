"""What is drawn in the chapter on other machines? Its figures, in its order."""

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
