"""A TPU compiler that is too old for JAX is refused before it can crash the process."""

import pytest

from scalingbook_lab.compiler import slices

JAX_072 = ["numpy>=1.26", 'libtpu==0.0.23; extra == "tpu"']
JAX_012 = ['libtpu==0.0.50.*; extra == "tpu"']


@pytest.mark.parametrize(
    ("installed", "requirements", "fits"),
    [
        ("0.0.21.1", JAX_072, False),  # together they end in a segmentation fault
        ("0.0.23", JAX_072, True),
        ("0.0.23.1", JAX_072, True),
        ("0.0.51", JAX_012, True),
        ("0.0.49", JAX_012, False),
        ("0.0.21.1", [], True),
    ],
)
def test_a_compiler_older_than_jax_needs_is_refused(installed, requirements, fits):
    assert (slices.outdated(installed, requirements) == "") == fits


def test_the_refusal_says_what_to_install():
    assert "pip install libtpu==0.0.23" in slices.outdated("0.0.21.1", JAX_072)
