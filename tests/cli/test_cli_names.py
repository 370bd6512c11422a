"""Machines, chips and types as people write them: what the answer says of a name, and chips of one's own."""

import json

import pytest

OWN = {"name": "mine", "flops_per_s": {"bf16": "165 TFLOPs"}, "hbm_bytes": "48GiB",
       "hbm_bytes_per_s": "1008 GB/s", "link_bytes_per_s": "31.5 GB/s", "domain_chips": 4,
       "joined": "PCIe"}  # fmt: skip


@pytest.fixture
def own(tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps(OWN))
    return str(tmp_path / "mine.json")


def one_line(text):
    return " ".join(text.split())


def test_the_answer_says_what_an_accelerator_type_counts(ask):
    told = ask("collective all-gather 1G v5p-128")
    assert "v5p-128 counts TensorCores, two per chip: it is 64 chips, the slice 4x4x4" in one_line(told.out)
    values = ask("collective all-gather 1G v6e-8 --json").values
    assert (values["machine"], values["chips"]) == ("TPU v6e 2x4", 8)
    assert values["machine_note"] == "v6e-8 counts TensorCores, one per chip: it is 8 chips, the slice 2x4"
    assert "machine_note" not in ask("collective all-gather 1G v6e:2x4 --json").values


def test_boards_without_a_switch_are_told_to_meet_in_their_host(ask):
    told = one_line(ask("collective all-gather 1G l40s:8").out)
    assert "L40S boards have no switch between them: they communicate through the PCIe of their host" in told
    assert "32 GB/s each way and 64 GB/s in total" in told


def test_a_single_chip_has_nothing_to_send(ask):
    told = ask("collective all-gather 1G h100:1")
    assert told.out.startswith("AllGather on 1 H100: 0 s, because a single chip has nothing to send")


def test_a_chip_of_a_file_is_a_machine_by_its_path_or_its_name(ask, own):
    by_path = ask("collective all-gather 1G --json", own).values
    assert (by_path["machine"], by_path["chips"]) == ("1 mine", 1)
    by_name = ask("collective all-gather 1G mine:4 --json --chip-file", own).values
    assert (by_name["machine"], by_name["networks"][0]["bytes_per_s"]) == ("4 mine", 31.5e9)
    assert ask("roofline mine --matmul 64x64x64 --json --chip-file", own).values["flops_per_s"] == 165e12
    assert "no chip 'mine' in the catalog" in ask("roofline mine --matmul 64x64x64").err


def test_a_figure_replaces_that_of_the_chip(ask):
    line = "roofline h100 --matmul 64x64x64 --json --figure hbm_bytes_per_s=4TB/s --figure fp8=3P --dtype"
    values = ask(line, "fp8_e4m3").values
    assert (values["bytes_per_s"], values["flops_per_s"]) == (4e12, 3e15)
    assert ask("roofline h100 --matmul 64x64x64 --json").values["bytes_per_s"] == 3.35e12


def test_a_figure_of_the_network_or_of_the_domain_changes_the_cluster(ask):
    """Both are the chip's numbers, from which the cluster takes its NICs and its domains."""
    nic = ask("collective all-gather 1G h100:32 --json --figure dcn_bytes_per_s=100GB/s").values
    assert [one["bytes_per_s"] for one in nic["networks"]] == [450e9, 100e9]
    domain = ask("collective all-gather 1G h100:32 --json --figure domain_chips=16").values
    assert [one["size"] for one in domain["networks"]] == [16, 2]


def test_an_instance_is_a_machine_with_its_own_network(ask):
    told = ask("collective all-gather 1G a3-highgpu-8g:4 --json").values
    assert (told["machine"], told["chips"]) == ("32 H100", 32)
    assert [one["bytes_per_s"] for one in told["networks"]] == [450e9, 12.5e9]
    assert "an instance has 800 Gb/s of network, 12.5 GB/s per chip" in told["machine_note"]
    slow = ask("plan llama-3-8b a3-highgpu-8g:4 --batch 256 --json").values
    fast = ask("plan llama-3-8b p5.48xlarge:4 --batch 256 --json").values
    assert slow["step_time_s"] > fast["step_time_s"]
    assert fast["step_time_s"] == ask("plan llama-3-8b h100:32 --batch 256 --json").values["step_time_s"]


def test_instances_are_listed_and_are_not_chips(ask):
    listed = ask("chips h200 --instances --json").values["instances"]
    assert {"p5en.48xlarge", "a3-ultragpu-8g", "BM.GPU.H200.8"} <= {one["name"] for one in listed}
    assert {one["chip"] for one in listed} == {"H200"}
    assert "is an instance with 8 H100, and a chip is needed here; write h100" in ask("chips p5.48xlarge").err
    assert "no instance in the catalog has Rubin" in ask("chips rubin --instances").err


def test_a_machine_in_the_place_of_a_chip_is_refused_with_its_chip(ask):
    told = ask("roofline h100:8 --matmul 64x64x64")
    assert (told.code, "is a machine, and one chip is needed here; write h100" in told.err) == (2, True)


@pytest.mark.parametrize("page", ["https://huggingface.co/Qwen/Qwen3-8B", "hf.co/Qwen/Qwen3-8B/tree/main"])
def test_the_page_of_a_model_is_its_id(ask, page):
    assert ask(f"model {page}", "--json").values["parameters"]["total"] == 8_190_735_360


def test_one_chip_needs_no_links_and_one_without_bf16_computes_in_fp16(ask):
    told = ask("plan gpt-2-xl v100:1 --batch 8 --sequence 1024 --as-written --json")
    assert told.code == 0
    assert (told.values["machine"], told.values["plan"]["compute"]) == ("1 V100", "fp16")
    assert ask("serve gpt-2 t4 --as-written --json").values["machine"] == "1 T4"


def test_a_block_scaled_type_is_stored_with_its_scales_and_multiplied_without(ask):
    line = "roofline b200 --matmul 64x8192x8192 --json --weights mxfp4 --compute"
    values = ask(line, "mxfp4").values
    assert values["flops_per_s"] == 9e15
    assert values["bytes"] == 2 * 64 * 8192 + 17 / 32 * 8192**2 + 2 * 64 * 8192


def test_a_name_that_tells_the_type_of_the_weights_is_served_with_it_and_says_so(ask):
    """As if --weights were written, but for the embedding and the unembedding, which stay as they are."""
    told = ask("serve Qwen/Qwen3-8B-FP8 h100:1 --json").values
    layout = told["search"]["front"][0]["layout"]
    assert (layout["weights"], layout["outer"]) == ("fp8", "bf16")
    (why,) = told["assumed"]
    assert "stored in fp8, as the name of the checkpoint says" in why
    written = ask("serve Qwen/Qwen3-8B-FP8 h100:1 --weights int8 --json").values
    assert written["search"]["front"][0]["layout"]["weights"] == "int8"
    assert written["assumed"] == []
    plan = ask("plan Qwen/Qwen3-8B-FP8 h100:8 --batch 64 --json").values
    plain = ask("plan Qwen/Qwen3-8B h100:8 --batch 64 --json").values
    assert plan["step_time_s"] == plain["step_time_s"]
    assert "a training step holds them" in plan["assumed"][0]
