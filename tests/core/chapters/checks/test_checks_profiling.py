"""The exercises on profiling: answers by hand or by brute force, named slips, verdicts on programs."""

from itertools import combinations
from math import ceil

import pytest
from judged import right, wrong

from scalingbook_book.chapters import checks
from scalingbook_book.chapters.profiling.checks import traces, written
from scalingbook_book.reader.checks import programs

CHECKS = checks.catalog("profiling")


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("profiling.padded-tile", 6144 / 2600),
        ("profiling.predict-product", "23.9 ms"),
        ("profiling.predict-allreduce", "1.68 ms"),
        ("profiling.padded-argument", 136 * 4096 * 2),
        ("profiling.gathered-array", "b"),
        ("profiling.exposed-share", 66.5 / 195),
        ("profiling.exposed-share", 66.5 / 196),
        ("profiling.bytes-per-run", 12 * 1.5 * 2**20),
        ("profiling.compilation-share", 78.3 / 136.7),
        ("profiling.step-mfu", "59.3%"),
        ("profiling.reduced-then-cut", 4),
        ("profiling.parameters-from-hlo", 8 * (3072 * 2048)),
        ("profiling.waiting-time", "44%"),
        ("profiling.count-flops", 284_426_240),
        ("profiling.exposed-time", "167 µs"),
        ("profiling.columns-to-hide", 7880),
        ("profiling.rows-to-hide", 1724),
        ("profiling.idle-mxu", 141 / 289),
        ("profiling.backward-memory", "512 MiB"),
        ("profiling.fewest-tile-bytes", 2**30 + 2**27),
        ("profiling.four-lengths", 22_502),
    ],
)
def test_answers_worked_out_by_hand(key, given):
    right(key, given)


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("profiling.padded-tile", 24 / 20, "128"),
        ("profiling.padded-tile", 256 / 130, "eight"),
        ("profiling.predict-product", "11.9 ms", "four chips"),
        ("profiling.predict-product", "191 ms", "one core"),
        ("profiling.predict-allreduce", "3.36 ms", "single link"),
        ("profiling.predict-allreduce", "2.24 ms", "own"),
        ("profiling.padded-argument", 4096 * 256 * 2, "{1,0}"),
        ("profiling.padded-argument", 4096 * 129 * 2, "without padding"),
        ("profiling.gathered-array", "c", "four times"),
        ("profiling.exposed-share", 0.41, "gap"),
        ("profiling.bytes-per-run", 12 * 2**20, "then an AllGather"),
        ("profiling.bytes-per-run", 1.5 * 2**20, "How often"),
        ("profiling.bytes-per-run", 6 * 1.5 * 2**20, "ReduceScatter"),
        ("profiling.compilation-share", 0.0727, "host"),
        ("profiling.compilation-share", "59.2%", "first step"),
        ("profiling.step-mfu", 0.79, "Recomputed"),
        ("profiling.reduced-then-cut", 2, "one of two causes"),
        ("profiling.parameters-from-hlo", 2 * 3072 * 2048, "one device"),
        ("profiling.parameters-from-hlo", 2 * 3072 * 2048 * 8, "all eight"),
        ("profiling.waiting-time", 0.526, "shortest"),
        ("profiling.count-flops", 2 * 64 * 256 * 256 * 2 + 2 * 64 * 256 * 1000, "often"),
        ("profiling.exposed-time", "279 µs", "hidden"),
        ("profiling.exposed-time", "589 µs", "sum of all"),
        ("profiling.columns-to-hide", 1970, "each device"),
        ("profiling.columns-to-hide", 15_760, "two"),
        ("profiling.rows-to-hide", 3448, "one link"),
        ("profiling.rows-to-hide", 1970, "eighth"),
        ("profiling.rows-to-hide", 13_790, "whole batch"),
        ("profiling.idle-mxu", 41 / 289, "after the last"),
        ("profiling.backward-memory", "256 MiB", "one array"),
        ("profiling.fewest-tile-bytes", 7 * 2**27, "next one"),
        ("profiling.four-lengths", 35_656, "powers of two"),
    ],
)
def test_usual_mistakes_are_named(key, given, says):
    wrong(key, given, says)


def verdict(key, moves, **told):
    return programs.ProgramVerdict(moves=programs.moves(moves), key=key, asked=(), **told)


@pytest.mark.parametrize(
    ("key", "moves"),
    [
        ("profiling.split-vocabulary", {"all-reduce X": (2, 3072)}),
        ("profiling.split-vocabulary", {"all-reduce X": (3, 3072)}),
        ("profiling.global-norm", {"all-reduce X": (1, 24)}),
        ("profiling.global-norm", {"all-reduce X": (1, 4)}),
        ("profiling.one-collective", {"all-gather X": (8, 8192)}),
    ],
)
def test_programs_that_move_no_more_than_they_have_to(key, moves):
    right(key, verdict(key, moves))
    wrong(key, verdict(key, moves, wrong="its shape is [], but should be [2]"), "Wrong result")


@pytest.mark.parametrize(
    ("key", "moves", "says"),
    [
        ("profiling.split-vocabulary", {"all-gather X": (1, 524_288)}, "weights"),
        ("profiling.split-vocabulary", {"all-gather X": (1, 2_097_152)}, "is not needed"),
        ("profiling.global-norm", {"all-gather X": (6, 278_528), "all-reduce X": (1, 4)}, "is not needed"),
        ("profiling.global-norm", {"all-reduce X": (6, 24)}, "should run once"),
        ("profiling.one-collective", {"all-gather X": (8, 8192), "all-reduce X": (8, 32)}, "Two collectives"),
        ("profiling.one-collective", {"all-gather X": (1, 262_144)}, "matrix"),
    ],
)
def test_programs_that_move_more(key, moves, says):
    wrong(key, verdict(key, moves), says)


def test_exposed_time_is_that_of_a_sweep_over_all_edges():
    edges = [(at, kind, step) for kind, lane in enumerate((traces.MATH, traces.LINKS))
             for start, end in lane for at, step in ((start, 1), (end, -1))]  # fmt: skip
    running, exposed, before = [0, 0], 0, 0
    for at, kind, step in sorted(edges):
        exposed += (at - before) * (running[1] > 0 and running[0] == 0)
        running[kind] += step
        before = at
    right("profiling.exposed-time", f"{exposed} µs")


def test_tiles_with_the_least_traffic_are_found_by_counting_every_fetch():
    found = []
    for rows in (1024, 2048):
        for columns in (512, 1024, 2048):
            if 8 * rows * columns + 4 * 128 * (rows + columns) <= 2**24:
                tiles = ceil(8192 / rows) * ceil(8192 / columns)
                found.append(2 * (tiles * 4096 * (rows + columns) + 8192**2))
    right("profiling.fewest-tile-bytes", min(found))


def test_the_best_lengths_are_the_best_of_all_choices_for_a_small_case():
    few = (3, 5, 6, 9, 14, 15, 20)
    for k in (1, 2, 3, 4):
        chosen = (c for c in combinations(few, k) if c[-1] == few[-1])
        assert written.least_padding(k, few) == min(written.padded(c, few) for c in chosen)
