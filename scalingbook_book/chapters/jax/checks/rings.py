"""Checks of the exercises on collective matmuls: rings whose hops run beside a matmul."""

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
        title="A ReduceScatter matmul as a ring",
        answer=lambda: right({"collective-permute Y -1": (_Y - 1, (_Y - 1) * _ROWS // _Y)}),
        kind="program",
        difficulty=2,
        hints=(
            "The sum of one block of columns travels around the ring. Each device adds its part and "
            "passes the sum on.",
            "The block that ends on device i started on device i - 1 and went all the way around.",
            "In step s, device i adds its partial product to block (i + 1 + s) mod n.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"reduce-scatter Y": _ROWS}),
                "Right, but in a single collective. Split it into hops, so that each can overlap with a "
                "matmul.",
            ),
            Mistake(
                lambda: right({"all-reduce Y": _ROWS}),
                "That reduces all columns on all devices and then discards three quarters of them.",
            ),
            Mistake(
                lambda: right({"collective-permute Y -1": (_Y, _ROWS)}),
                "That is one hop too many. Start with a partial product, not with zeros.",
            ),
            Mistake(
                lambda: right({"collective-permute Y +1": (_Y - 1, (_Y - 1) * _ROWS // _Y)}),
                "Right, but your blocks travel to the right. Which block does a device start with in "
                "the other direction?",
            ),
        ),
        right="Right: each of the three hops can overlap with a matmul that does not depend on it.",
    ),
    Check(
        key="jax.four-sums",
        title="Four AllReduces instead of one",
        answer=lambda: right({"all-reduce Y": _ROWS}),
        kind="program",
        difficulty=2,
        hints=(
            "Split W into four groups of columns with `jnp.split`, and write a matmul and a sum for each.",
            "Call `lax.psum(a @ group, 'Y')` for each group, and `jnp.concatenate` the four results.",
        ),
        mistakes=(
            Mistake(
                lambda: right({"all-reduce Y": (4, 4 * _ROWS)}),
                "Each of the four AllReduces sums all columns. It only has to sum those of its own matmul.",
            ),
        ),
        right="Right: none of the four AllReduces depends on the next matmul. Whether the compiler overlaps "
        "them shows only in its schedule.",
    ),
    Check(
        key="jax.gather-both-ways",
        title="An AllGather matmul in both directions",
        answer=lambda: right(
            {f"collective-permute Y {way}1": (_Y - 1, (_Y - 1) * _CHUNK // 2) for way in "+-"}
        ),
        kind="program",
        difficulty=2,
        hints=(
            "Split the columns of A on each device in two halves. Send one to the right and one to the left.",
            "After s hops to the right, the half that arrives on device i comes from device i - s.",
            "Multiply a half by the rows of W that belong to it: the upper or lower half of those of "
            "its origin.",
        ),
        mistakes=(
            Mistake(
                lambda: right({f"collective-permute Y {way}1": (_Y - 1, (_Y - 1) * _CHUNK) for way in "+-"}),
                "You send whole blocks in both directions, so everything arrives twice. Halves are enough.",
            ),
            Mistake(
                lambda: right({"collective-permute Y -1": (_Y - 1, (_Y - 1) * _CHUNK)}),
                "Everything goes to the left, and the links to the right are idle.",
            ),
            Mistake(
                lambda: right({"collective-permute Y +1": (_Y - 1, (_Y - 1) * _CHUNK)}),
                "Everything goes to the right, and the links to the left are idle.",
            ),
            Mistake(
                lambda: right({"all-gather Y": _Y * _CHUNK}),
                "The AllGather has to finish before the matmul can start. Split it into hops.",
            ),
            *(
                Mistake(
                    lambda far=far, near=near: right(
                        {f"collective-permute Y {far}1": 2 * _CHUNK, f"collective-permute Y {near}1": _CHUNK}
                    ),
                    f"You send whole blocks, two hops to the {side} and one in the other direction, as "
                    f"the TPU "
                    "compiler does. One direction then carries twice as much. Halves share the links evenly.",
                )
                for far, near, side in (("+", "-", "right"), ("-", "+", "left"))
            ),
        ),
        right="Right: you move the same number of bytes as in one direction, in half the time.",
    ),
    Check(
        key="jax.hidden-depth",
        title="The depth that hides the ring",
        answer=lambda: _depth(FP32),
        unit="",
        rel_tol=0.01,
        difficulty=2,
        hints=(
            "In each hop, one block of the sum moves while the next partial product is computed.",
            "Both have the same rows and columns, so compare bytes per element with FLOPs per element.",
            "Each element of a partial product is a sum over the device's shard of D.",
        ),
        mistakes=(
            Mistake(
                lambda: _depth(BF16),
                "The sum travels in fp32, in one direction. How many bytes does an element of it have?",
                slip="wrong-dtype-size",
            ),
            Mistake(
                lambda: 2 * _depth(FP32),
                "A multiplication and an addition are two FLOPs.",
                slip="factor-two-flops",
            ),
            Mistake(
                lambda: 4 * _depth(FP32),
                "That is all of D. The question asks for the shard of D on one device.",
                slip="total-for-one",
            ),
        ),
    ),
)
