"""Parts of a configuration besides the language model are counted weight by weight or listed."""

from hf_configs import CONFIGS

from scalingbook_lib import models


def test_the_vision_encoder_of_gemma_3_is_counted_weight_by_weight():
    """SigLIP of 27 layers on 4,096 patches of 14 × 14, and the projector into the width of the model."""
    D, F = 1152, 4304
    layer = 4 * (D * D + D) + 2 * D * F + F + D + 2 * 2 * D
    tower = 3 * 14 * 14 * D + D + 4096 * D + 27 * layer + 2 * D
    for name in ("Gemma-3 4B", "Gemma-3 12B", "Gemma-3 27B"):
        m = models.find(name)
        assert m.vision_params == tower + D * m.D + D
        assert str(m).endswith(f"; not counted: {m.vision_params:,} that see pictures")


def test_the_vision_encoder_of_qwen3_5_is_counted_weight_by_weight():
    """27 layers on two frames of 16 × 16, positions of 48 × 48, and an MLP of four patches into the model."""
    D, F = 1152, 4304
    layer = 4 * (D * D + D) + 2 * D * F + F + D + 2 * 2 * D
    tower = 3 * 2 * 16 * 16 * D + D + 48 * 48 * D + 27 * layer + 2 * D
    for size in ("27B", "35B-A3B", "122B-A10B", "397B-A17B"):
        m = models.find(f"Qwen3.5-{size}")
        assert m.vision_params == tower + 4 * D * (4 * D + 1) + (4 * D + 1) * m.D
    parts = 396_346_350_336, 6_595_568_128, 456_010_480  # of 397B's file, by the names of its tensors
    assert (m.params, m.next_params, m.vision_params) == parts


def test_uncounted_parts_of_a_config_are_listed():
    more = {"num_nextn_predict_layers": 1}
    seen = models.from_hf(CONFIGS["DeepSeek-V3"] | more, name="DeepSeek-V3")
    assert seen == models.find("DeepSeek-V3")
    assert seen.next_params == models.find("DeepSeek-V3").next_params == 13_463_426_048
    assert str(seen).endswith("; not counted: 13,463,426,048 that predict a token more")
    file = 684_531_386_000  # also 58 router buffers of 256, and a scale for each 128 × 128 of its fp8 weights
    assert 0 < file - seen.params - seen.next_params - 58 * 256 < 685e9 / 128**2
    assert "not counted: the part that sees pictures" in str(models.from_hf(CONFIGS["Gemma-3 4B"]))
    assert not models.from_hf(CONFIGS["Llama 3 8B"]).uncounted
    for none in (None, 0):
        assert models.from_hf(CONFIGS["DeepSeek-V3"] | {"num_nextn_predict_layers": none}).next_params == 0
