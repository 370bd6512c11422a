"""The commands `inspect` and `profile`: exit codes, files that they write, and what bad input is told."""

import gzip
import json
import re
from pathlib import Path

import pytest

from scalingbook_cli import book_site
from tools.environment import ROOT

STEP = ROOT / "data" / "programs" / "train_step.hlo.gz"
PROGRAMS = ROOT / "tests" / "core" / "inspection" / "programs"
TRACES = ROOT / "data" / "traces"
H100 = ROOT / "tests" / "core" / "profiles" / "h100"


def one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("limit", "broken"),
    [
        ("--max-exposed 10%", "Exposed communication is 19% of a run, more than 10%"),
        ("--max-exposed 100us", "Exposed communication takes 802 µs, more than 100 µs"),
        ("--max-hbm 100MiB", "The peak of memory is 329.3 MiB per device, more than 100 MiB"),
        ("--max-hbm 0.1%", "The peak of memory is 329.3 MiB per device, more than 97.28 MiB"),
        ("--no-collective all-gather", "All-gather runs 16 times (train.py:21), and is not allowed"),
        ("--no-collective all-reduce:model", "All-reduce:model runs 16 times"),
    ],
)
def test_an_exceeded_limit_is_named_and_ends_with_3(ask, limit, broken):
    told = ask(f"inspect {limit}", str(STEP))
    assert told.code == 3
    assert told.err == ""
    assert broken in one_line(told.out)


def test_a_limit_on_an_axis_that_the_mesh_does_not_have_is_refused(ask):
    told = ask("inspect --no-collective all-gather:modl", str(STEP))
    assert told.code == 2
    assert "'modl', which the mesh does not have; write one of its axes, data, model" in told.err


def test_limits_that_are_kept_end_with_0(ask):
    line = (
        "inspect --max-exposed 50% --max-hbm 90% --no-collective all-to-all --no-collective all-gather:model"
    )
    told = ask(line, str(STEP))
    assert told.code == 0
    assert "Limits" not in told.out


def test_json_is_what_the_library_says_and_lists_broken_limits(ask):
    told = ask("inspect --json --max-hbm 100MiB", str(STEP))
    assert told.code == 3
    assert told.values["mesh"] == {"data": 16, "model": 4}
    assert told.values["findings"][0]["rule"] == "replicated state"
    assert len(told.values["broken_limits"]) == 1


def test_explain_adds_up_a_run(ask):
    told = ask("inspect --json --explain", str(STEP)).values
    line = next(one for one in told["derivation"] if one["name"] == "time of a run")
    assert line["value"] == told["estimated_run_s"]
    assert sum(map(float, line["numbers"].split(" + "))) == pytest.approx(line["value"], rel=1e-4)


def test_a_comparison_says_what_changed(ask):
    old, new = (PROGRAMS / f"repeated-in-a-loop.{which}.hlo.gz" for which in ("faulty", "fixed"))
    told = ask("inspect", str(new), "--diff", str(old))
    assert told.code == 0
    assert "Largest change: " in told.out
    assert "all-gather over data" in told.out
    assert "repeated in a loop" in told.out


@pytest.fixture
def no_site(monkeypatch, tmp_path):
    """A clone in which no site was built."""
    monkeypatch.setattr(book_site, "BUILT", tmp_path / "nothing")


REPORTS = (("inspect", str(STEP)), ("profile", str(TRACES / "serial-before.json")))


@pytest.mark.parametrize("words", REPORTS, ids=["inspect", "profile"])
@pytest.mark.parametrize(
    ("site", "address"),
    [
        ("https://book.example", "https://book.example/"),
        ("http://127.0.0.1:8000/book/", "http://127.0.0.1:8000/book/"),
    ],
)
def test_every_finding_of_an_html_report_links_to_its_section(ask, tmp_path, words, site, address):
    ask(*words, "--html", str(tmp_path / "r.html"), "--site", site)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    links = re.findall(r'<a href="([^"]*)">', page)
    assert len(links) == page.count("<li>") > 0
    assert all(re.fullmatch(rf"{re.escape(address)}chapters/\w+\.html#[\w-]+", link) for link in links)


@pytest.mark.parametrize("words", REPORTS, ids=["inspect", "profile"])
def test_findings_link_to_the_site_that_was_built_or_to_a_folder(ask, tmp_path, monkeypatch, words):
    (tmp_path / "index.html").write_text("")
    monkeypatch.setattr(book_site, "BUILT", tmp_path)
    ask(*words, "--html", str(tmp_path / "r.html"))
    ask(*words, "--html", str(tmp_path / "s.html"), "--site", str(tmp_path))
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("r.html", "s.html")]
    assert f'<a href="{tmp_path.as_uri()}/chapters/' in pages[0]
    assert pages[0] == pages[1]


def test_a_site_that_is_no_address_is_refused(ask):
    told = ask("inspect", str(STEP), "--site", "book.example")
    assert told.code == 2
    assert "is neither an address nor a folder" in told.err


@pytest.mark.usefixtures("no_site")
def test_the_report_as_html_is_one_file_that_loads_nothing(ask, tmp_path):
    ask("inspect", str(STEP), "--html", str(tmp_path / "r.html"))
    ask("profile", str(TRACES / "serial-before.json"), "--html", str(tmp_path / "p.html"))
    for name in ("r.html", "p.html"):
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
        assert "<svg" in page
        assert not any(word in page for word in ("<script", "http://", "https://", "src="))


def test_a_saved_text_keeps_its_mesh_and_shardings(ask, tmp_path):
    ask("inspect", str(STEP), "--save", str(tmp_path / "again.hlo.txt"))
    one, other = (ask("inspect --json", str(path)).values for path in (STEP, tmp_path / "again.hlo.txt"))
    assert one == other


def test_a_text_on_standard_input_is_read(ask, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(gzip.decompress(STEP.read_bytes()).decode()))
    assert ask("inspect - --json").values["program"] == "jit_step"


def test_a_machine_with_other_links_gives_other_times(ask):
    bare = ask("inspect --json", str(STEP)).values
    other = ask("inspect --json --slice v5p:4x4x4 --mesh data=16,model=4", str(STEP)).values
    assert bare["estimated_run_s"] == other["estimated_run_s"]
    assert ask("inspect --json --slice h100:64", str(STEP)).values["exposed_s"] != bare["exposed_s"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("def step(x):\n    return x\n")
    (tmp_path / "broken.py").write_text("def step(:\n")
    (tmp_path / "raises.py").write_text("import json\n\nraise RuntimeError('no data')\n")
    (tmp_path / "picture.hlo").write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    (tmp_path / "half.hlo.gz").write_bytes(STEP.read_bytes()[:2000])
    text = gzip.decompress(STEP.read_bytes()).decode()
    (tmp_path / "cut.hlo").write_text(text[: len(text) // 2])
    (tmp_path / "line.hlo").write_text(
        "HloModule m\nENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0\n  ROOT %r = "
        "f32[8] add(%p, %p)\n}\n"
    )
    (tmp_path / "step.mlir").write_text("module @jit_f attributes {} {\n}\n")
    (tmp_path / "notes.txt").write_text("nothing in particular\n")
    (tmp_path / "small.json").write_text("{}")
    (tmp_path / "empty").mkdir()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("inspect", "give one program: FILE.py:FUNCTION or a text"),
        ("inspect a.hlo --hlo b.hlo", "give one program"),
        ("inspect none.hlo", "there is no file 'none.hlo'; write the path of a text"),
        ("inspect none.py:step", "there is no file 'none.py'; write the path of a Python file"),
        ("inspect train.py", "train.py is a Python file; name its function too, as in train.py:step"),
        ("inspect train.py:run", "train.py has no function 'run'; its functions are: step"),
        ("inspect train.py:step", "define step_args(mesh), which returns a tuple of jax.ShapeDtypeStruct"),
        ("inspect broken.py:step", "broken.py:1 raises SyntaxError"),
        ("inspect raises.py:step", "raises.py:3 raises RuntimeError: no data"),
        ("inspect train.py:step --slice h100:8 --args f32[8]", "XLA compiles for H100 only where one is"),
        ("inspect picture.hlo", "picture.hlo is not text: byte 0 is not UTF-8"),
        ("inspect half.hlo.gz", "half.hlo.gz is compressed with gzip and damaged; copy it again"),
        ("inspect cut.hlo", "cut.hlo"),
        ("inspect line.hlo", "(line 3: '%p = f32[8] parameter(0')"),
        ("inspect --hlo step.mlir", "the text is StableHLO"),
        ("inspect notes.txt", "notes.txt: the text that begins 'nothing in particular"),
        ("inspect notes.txt --args f32[8]", "--args are arguments of a function"),
        ("inspect notes.txt --mesh data:4", "'data:4' is not a mesh; name each axis of the program once"),
        (
            "inspect notes.txt --max-exposed soon",
            "'soon' is neither a share nor a time; write one as in 10% or 2ms",
        ),
        ("inspect notes.txt --max-hbm 5s", "'5s' has the unit s; write 16M"),
        ("inspect notes.txt --no-collective gather", "'gather' is not a collective of HLO; write one of"),
        ("inspect empty", "is not a regular file"),
        ("profile none", "there is no file or folder 'none'; give a *.xplane.pb"),
        ("profile empty", "no profile (*.xplane.pb"),
        ("profile notes.txt", "notes.txt"),
        ("profile small.json", "not a profiler's trace.json"),
        ("profile picture.hlo", "picture.hlo"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence(ask, line, told):
    answer = ask(line)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert told in answer.err


def test_a_mesh_of_another_size_and_tokens_without_a_model_are_refused(ask):
    assert "has 8 devices, but the program was compiled for 64" in ask("inspect --mesh X=8", str(STEP)).err
    assert "write them, as in --tokens 4Mi" in ask("inspect --model llama-3-8b", str(STEP)).err


def test_a_profile_is_told_in_three_lines_with_its_levers(ask):
    told = ask("profile", str(TRACES / "serial-before.json"))
    head = told.out.split("\n\n")[0].splitlines()
    assert len(head) == 3
    assert head[1].startswith("Steps wait most for collectives")
    assert "all-reduce over X of 1.05 MB, 12 times a step" in one_line(told.out)


def test_a_profile_exceeds_its_limits(ask):
    told = ask("profile --max-exposed 10% --max-idle 1ms", str(TRACES / "serial-before.json"))
    assert told.code == 3
    assert "Exposed communication is 65% of a step, more than 10%" in told.out
    assert "Idle time takes 3.84 ms of a step, more than 1 ms" in told.out


def test_the_program_of_a_gpu_profile_gives_its_kernels_a_roofline(ask):
    path = str(H100 / "whole.xplane.pb.gz")
    bare = ask("profile --json", path).values
    named = ask("profile --json --hlo", str(H100 / "whole.hlo.gz"), path).values
    assert bare["launches"]["graph_share"] == named["launches"]["graph_share"] == 1
    assert all(op["roofline_share"] is None for op in bare["operations"])
    shares = [op["roofline_share"] for op in named["operations"] if op["kind"] == "matmul"]
    assert all(0.5 < share < 0.7 for share in shares)


def _folder_of_hosts(root, names):
    """A TensorBoard folder with one profile for each host."""
    folder = root / "logs" / "plugins" / "profile" / "2026_01_01"
    folder.mkdir(parents=True)
    for host, name in zip("abc", names, strict=False):
        packed = (H100 / f"{name}.xplane.pb.gz").read_bytes()
        (folder / f"host-{host}.xplane.pb").write_bytes(gzip.decompress(packed))
    return str(root / "logs")


def test_a_folder_is_read_with_all_its_hosts(ask, tmp_path):
    values = ask("profile --json", _folder_of_hosts(tmp_path, ("layer", "layer"))).values
    assert values["hosts"] == ["host-a", "host-b"]
    assert {w["name"] for w in values["workers"]} == {"host-a", "host-b"}


def test_a_folder_with_profiles_of_different_programs_is_refused(ask, tmp_path):
    told = ask("profile", _folder_of_hosts(tmp_path, ("layer", "whole")))
    assert told.code == 2
    assert "holds profiles of different runs: host-a" in " ".join(told.err.split())


def test_the_page_of_the_site_asks_the_same_library():
    from scalingbook_book.inspection_page import inspect_json

    text = gzip.decompress(STEP.read_bytes()).decode()
    answer = json.loads(inspect_json(json.dumps({"text": text, "machine": "", "mesh": ""})))
    assert 'href="chapters/training.html#training-fsdp"' in answer["html"]
    wrong = json.loads(inspect_json(json.dumps({"text": "x", "machine": "", "mesh": ""})))
    assert "no entry computation" in wrong["error"]
    other = json.loads(inspect_json(json.dumps({"text": text, "machine": "v99", "mesh": ""})))
    assert "v99" in other["error"]


def test_the_screen_on_the_page_is_of_the_program_on_the_page():
    page = Path(ROOT / "inspect.md").read_text(encoding="utf-8")
    for path in (
        "data/programs/train.py",
        "tests/cli/screens/inspect.txt",
        "data/programs/train_step.hlo.gz",
    ):
        assert path in page
        assert (ROOT / path).is_file()
