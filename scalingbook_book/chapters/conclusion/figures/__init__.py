"""The figures of the conclusions, in the order of the pages."""

from scalingbook_book.chapters.conclusion.figures import decision, laws, scored, worked

FIGURES = (
    worked.seven_questions,
    worked.staircase,
    laws.boundaries,
    laws.split,
    laws.copies,
    laws.prices,
    scored.predicted_and_published,
    decision.deadlines,
)
