"""Can a reader take a product apart into steps that leave time to move? Checks on collective matmuls."""

from scalingbook_book.reader.checks.check import Check, Mistake
from scalingbook_book.reader.checks.programs import right
from scalingbook_lib.machines import chips
from scalingbook_lib.units import BF16, FP32, DType


def f32(*shape: int) -> int:
    """The bytes of an fp32 array."""
    size = 4
    for n in shape:
        size *= n
    return size


_B, _D, _F, _X, _Y = 16, 16, 32, 2, 4  # the exercises' arrays: A[B_X, D_Y], and W with F columns
_ROWS = f32(_B // _X, _F)  # what every device has of the product before it is summed over Y
_CHUNK = f32(_B // _X, _D // _Y)  # one device's block of A


def _depth(carried: DType, links: int = 1) -> float:
    """The summands of a device from which a hop of the sum takes no longer than the next block's product."""
    each_s = carried.bytes / (links * chips.V5P.link_bytes_per_s)  # to move one element of a partial sum
    return each_s * chips.V5P.bf16_flops_per_s / 2  # a multiply and an add for each summand


RINGS = (
    Check(
        key="jax.scattered-sum",
        title="A scattered sum, by hand",
        answer=lambda: right({"collective-permute Y -1": (_Y - 1, (_Y - 1) * _ROWS // _Y)}),
        kind="program",
        difficulty=2,
        hints=(
            "The sum of one block of columns travels. Each device adds its own summand and passes it on.",
            "The block that ends on device i set off from device i - 1 and went the long way round.",
            "At step s, device i adds its summand of block (i + 1 + s) mod n.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"reduce-scatter Y": _ROWS}),
                "Right, but in one piece. Take it apart into hops, so that each can run beside a product.",
            ),
            Mistake(
                lambda: right({"all-reduce Y": _ROWS}),
                "That completes all columns on all devices, and throws away three quarters.",
            ),
            Mistake(
                lambda: right({"collective-permute Y -1": (_Y, _ROWS)}),
                "One hop too many: begin with a summand, not with zeros that travel.",
            ),
            Mistake(
                lambda: right({"collective-permute Y +1": (_Y - 1, (_Y - 1) * _ROWS // _Y)}),
                "Right, but to the right. Turn the ring round: which block does a device begin with then?",
            ),
        ),
        right="Right. Three hops, and beside each of them a product that does not wait for it.",
    ),
    Check(
        key="jax.four-sums",
        title="Four sums for one",
        answer=lambda: right({"all-reduce Y": _ROWS}),
        kind="program",
        difficulty=2,
        hints=(
            "Cut W into four groups of columns with `jnp.split`: four products, and a sum for each.",
            "`lax.psum(a @ group, 'Y')` of each group, and `jnp.concatenate` of the four results.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-reduce Y": (4, 4 * _ROWS)}),
                "Each of the four sums all columns. A sum is needed for those of its own product alone.",
            ),
        ),
        right="Right: four sums, and none of them needs the next product. What the compiler makes of them, "
        "only its schedule tells.",
    ),
    Check(
        key="jax.gather-both-ways",
        title="Both ways round",
        answer=lambda: right(
            {f"collective-permute Y {way}1": (_Y - 1, (_Y - 1) * _CHUNK // 2) for way in "+-"}
        ),
        kind="program",
        difficulty=2,
        hints=(
            "Cut each device's columns of A in two halves; one goes to the right, the other to the left.",
            "After s hops to the right, the half that is here set off from device i - s.",
            "A half meets the rows of W that belong to it: those of its origin, upper or lower half.",
        ),
        mistakes=(
            Mistake(
                lambda: right({f"collective-permute Y {way}1": (_Y - 1, (_Y - 1) * _CHUNK) for way in "+-"}),
                "Both ways go whole blocks: everything arrives twice. Halves will do.",
            ),
            Mistake(
                lambda: right({"collective-permute Y -1": (_Y - 1, (_Y - 1) * _CHUNK)}),
                "All goes to the left, and the links to the right are idle.",
            ),
            Mistake(
                lambda: right({"collective-permute Y +1": (_Y - 1, (_Y - 1) * _CHUNK)}),
                "All goes to the right, and the links to the left are idle.",
            ),
            Mistake(
                lambda: right({"all-gather Y": _Y * _CHUNK}),
                "The gather is finished before the product begins. Take it apart into hops.",
            ),
            *(
                Mistake(
                    lambda far=far, near=near: right(
                        {f"collective-permute Y {far}1": 2 * _CHUNK, f"collective-permute Y {near}1": _CHUNK}
                    ),
                    f"Whole blocks, two hops to the {side} and one the other way, as the TPU's compiler does "
                    "it: one way carries twice what the other does. Halves share evenly.",
                )
                for far, near, side in (("+", "-", "right"), ("-", "+", "left"))
            ),
        ),
        right="Right: as many bytes as one way round, in half the time.",
    ),
    Check(
        key="jax.hidden-depth",
        title="How deep must it be?",
        answer=lambda: _depth(FP32),
        unit="",
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "At a hop one block of the sum moves. Meanwhile the next summand is computed.",
            "Both have the same rows and columns, which cancel: bytes an element, FLOPs an element.",
            "An element of a summand is a sum over the device's share of D.",
        ),
        mistakes=(
            Mistake(
                lambda: _depth(BF16),
                "The sum travels in fp32, one way: how many bytes has an element of it?",
                slip="wrong-dtype-size",
            ),
            Mistake(
                lambda: 2 * _depth(FP32),
                "A summand is multiplied and added: two FLOPs.",
                slip="factor-two-flops",
            ),
            Mistake(
                lambda: 4 * _depth(FP32),
                "That is all of D; asked for is a device's share of it.",
                slip="total-for-one",
            ),
        ),
    ),
)
