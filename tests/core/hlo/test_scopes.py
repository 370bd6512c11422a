"""Extracts the author's named scopes from the paths that XLA keeps."""

import pytest

from scalingbook_lib.hlo import scopes


@pytest.mark.parametrize(
    ("source", "scope"),
    [
        ("jit(f)/up/dot_general", "up"),
        ("jit(f)/shard_map/while/body/eval_jaxpr/sum/psum", "loop/sum"),
        ("jit(f)/transpose(jvp(up))/dot_general", "up backward"),
        ("jit(f)/jvp(up)/tanh", "up"),
        ("jit(f)/jvp()/mul", ""),
        ("jit(f)/outer/jit(g)/inner/add", "outer/inner"),
        ("", ""),
    ],
)
def test_a_path_reads_as_the_scopes_that_the_author_named(source, scope):
    assert "/".join(scopes.scope_names(source)) == scope
