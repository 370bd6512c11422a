"""How wide, and how many tokens, until a layer waits for the network? The exercises on one layer."""

from scalingbook_lib import models
from scalingbook_lib.machines import Chip, chips
from scalingbook_lib.machines.clusters import Cluster
from scalingbook_lib.reader.checks.check import Check, Mistake
from scalingbook_lib.steps import limits
from scalingbook_lib.units import BF16

_TWO = Cluster.of(chips.H100, 16)
_C = chips.H100.bf16_flops_per_s


def _width(chip: Chip, Y: int) -> float:
    """The least F for tensor parallelism over Y chips of a node."""
    return limits.tensor_parallel(Cluster.of(chip, 8), Y).least


def _copied(chip: Chip = chips.H100, bytes_per_s: float | None = None) -> float:
    """Copying a layer's input out, over the forward pass of that layer, for a token of LLaMA-3 70B."""
    model = models.find("LLaMA-3 70B")
    flops = sum(w.flops_per_token for w in model.weights() if w.part != "unembedding") / model.L
    rate = bytes_per_s or chip.host_bytes_per_s or chip.pcie_bytes_per_s or 0
    return (BF16.bytes * model.D / rate) / (flops / chip.bf16_flops_per_s)


LAYERS = (
    Check(
        key="gpus.16",
        title="Two GPUs of a full mesh",
        answer=lambda: _width(chips.MI300X, 2),
        difficulty=2,
        hints=(
            "How many of a GPU's seven links lead to one certain other?",
            "Each has 4BDF/2 FLOPs. The network gathers 2BD bytes and later scatters 2BD; half of them move.",
        ),
        mistakes=(
            Mistake(1 / 7, "That is with all seven links. Six of them lead to GPUs that do not take part."),
            Mistake(lambda: _width(chips.H100, 2), "That is an H100, whose links all lead to a switch."),
            Mistake(2, "Half of the array is there already."),
        ),
        right="Right. On a full mesh it is the same width for two, four and eight GPUs.",
    ),
    Check(
        key="gpus.17",
        title="Activations on the host",
        answer=_copied,
        difficulty=2,
        hints=(
            "The input of a layer has D elements for each token.",
            "A layer does two FLOPs per parameter and token: about 0.86 G parameters.",
        ),
        mistakes=(
            Mistake(
                lambda: _copied(bytes_per_s=450e9), "That is over NVLink-C2C. An H100 has PCIe, 63 GB/s."
            ),
            Mistake(1 / 80, "That is the whole model's arithmetic for one layer's input."),
            Mistake(0.5, "Bytes and FLOPs both have a factor of two here: bf16, and multiply-add."),
            Mistake(1 / 3, "That is with the backward pass. Here the copy has the forward pass to hide in."),
        ),
        right="Right: it hides easily, as long as nothing else uses the bus.",
    ),
    Check(
        key="gpus.18",
        title="Data parallelism over two nodes",
        answer=lambda: limits.data_parallel(_TWO).least,
        unit="tokens",
        difficulty=2,
        hints=(
            "Per GPU: 8BDF/N FLOPs against 8DF bytes, of which a part is there already.",
            "Through the cards of a node comes half of the array. And over NVLink?",
            "Each GPU receives 7/8 of the array over NVLink: from its own node, or passed on by it.",
        ),
        mistakes=(
            Mistake(
                lambda: limits.data_parallel(_TWO).term("leaf"),
                "That is the network alone, and half of the array passes it. NVLink takes longer.",
            ),
            Mistake(
                lambda: _C / 400e9, "That is for many nodes. With two, half of the array is there already."
            ),
            Mistake(8 / 7, "Nearly: of what NVLink brings, each GPU has an eighth already."),
            Mistake(lambda: _C / 50e9 / 2, "A node has eight cards, and each brings another part."),
        ),
        right="Right: with two nodes it is NVLink that binds.",
    ),
    Check(
        key="gpus.19",
        title="Tensor parallelism over two nodes",
        answer=lambda: limits.tensor_parallel(_TWO, 16).least,
        difficulty=3,
        hints=(
            "4BDF / (16 C) of arithmetic; a gather and a scatter of 2BD bytes each.",
            "The network brings half of 2BD into a node, 400 GB/s. NVLink brings 7/8 of it to each GPU.",
            "Take the stage that lasts longer; F is 16 C times its seconds per byte.",
        ),
        mistakes=(
            Mistake(
                lambda: limits.tensor_parallel(_TWO, 16).term("leaf"),
                "That is the network's stage. The stage over NVLink lasts longer.",
            ),
            Mistake(lambda: 15 * _C / 450e9, "That is one node of 16. Half of what comes has one way more."),
            Mistake(
                lambda: 16 * _C / 400e9, "That is for many nodes, where nearly nothing is there already."
            ),
            Mistake(lambda: 7 * _C / 450e9, "That is for eight GPUs: 16 share the arithmetic."),
            Mistake(8 / 7, "Of what NVLink brings, each GPU has an eighth already."),
        ),
        right="Right. A gated MLP has a third matrix for the same activations, and needs two thirds of it.",
    ),
)
