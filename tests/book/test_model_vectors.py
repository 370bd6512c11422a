"""The public conformance vectors are what the library counts today."""

from tools import model_vectors


def test_the_table_is_what_its_tool_writes():
    path = model_vectors.DATA / "vectors" / "models.json"
    assert path.read_text(encoding="utf-8") == model_vectors.text(), "run python -m tools.model_vectors"
