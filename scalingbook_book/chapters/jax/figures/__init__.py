"""The figures of the chapter on JAX and of its deeper pages, in the order of the pages."""

from scalingbook_book.chapters.jax.figures import blocks, deeper, modes, moves, train_step

FIGURES = (
    modes.three_answers,
    blocks.mesh_blocks,
    blocks.dictionary,
    modes.four_answers,
    blocks.varies,
    moves.transposes,
    moves.ring,
    moves.exchange,
    train_step.step_stages,
    train_step.step_profile,
    deeper.five_sums,
    deeper.ticks,
    deeper.credit,
    deeper.hosts,
)
