"""The catalog's TPUs against the registry that JAX itself computes with, an oracle from another source."""

import pytest

from scalingbook_lib.machines import chips, machine_names

tpu_info = pytest.importorskip("jax._src.tpu_info")
if not hasattr(tpu_info, "get_tpu_info_for_chip"):  # before JAX 0.10
    pytest.skip("this JAX has no registry of TPUs", allow_module_level=True)

VERSIONS = {"v2": chips.V2, "v3": chips.V3, "v4": chips.V4, "v5e": chips.V5E, "v5p": chips.V5P,
            "v6e": chips.V6E, "7x": chips.TPU7X}  # fmt: skip
FIGURES = {
    "bf16_flops_per_s": "bf16_ops_per_second",
    "hbm_bytes": "hbm_capacity_bytes",
    "hbm_bytes_per_s": "mem_bw_bytes_per_second",
    "int8_ops_per_s": "int8_ops_per_second",
    "int4_ops_per_s": "int4_ops_per_second",
}


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_figure_is_that_of_the_registry_or_says_that_the_registry_disagrees(version, figure):
    chip = VERSIONS[version]
    info = tpu_info.get_tpu_info_for_chip(tpu_info.ChipVersion(version), 1)
    listed = chip.cores * getattr(info, FIGURES[figure])  # of one TensorCore there
    if listed and figure in chip.figures():
        agrees = chip.figures()[figure] == pytest.approx(listed, rel=0.015)
        assert agrees or "JAX" in chip.sources[figure].disagreement, (chip.figures()[figure], listed)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_accelerator_type_counts_the_tensorcores_of_the_registry(version):
    cores = tpu_info.ChipVersion(version).num_physical_tensor_cores_per_chip
    assert VERSIONS[version].cores == cores
    assert machine_names.read(f"{VERSIONS[version].name}-{4 * cores}").machine.chips == 4
