"""Formatting numbers with units, and parsing them back."""

import math

import pytest

from scalingbook_lib import units
from scalingbook_lib.units import GiB, MiB, Quantity, binary, count, parse, percent, si


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (4.36e-5, "s", "43.6 µs"),
        (0, "s", "0 s"),
        (1, "s", "1 s"),
        (0.0999, "s", "99.9 ms"),
        (999.6, "B/s", "1 kB/s"),  # rounds into the next prefix
        (999.4, "B/s", "999 B/s"),
        (1.97e14, "FLOPs/s", "197 TFLOPs/s"),
        (-43.6e-6, "s", "-43.6 µs"),
        (999.0, "s", "999 s"),
        (1160.0, "s", "19.3 min"),
        (7200.0, "s", "2 h"),
        (40 * 86_400.0, "s", "40 days"),
        (0.001, "B", "0.001 B"),  # there is no millibyte
        (1e-17, "s", "1e-05 ps"),  # and never a zero that is none
        (2.5e22, "B", "25,000 EB"),
        (math.inf, "s", "inf s"),
        (70e9, "", "70 G"),
    ],
)
def test_si_writes_decimal_prefixes(value, unit, words):
    assert si(value, unit) == words


def test_si_keeps_as_many_figures_as_asked():
    assert [si(1234567, "B", digits) for digits in (1, 2, 3, 5)] == ["1 MB", "1.2 MB", "1.23 MB", "1.2346 MB"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2**34, "16 GiB"),
        (2**34 - 1, "16 GiB"),
        (1.5 * GiB, "1.5 GiB"),
        (1023 * MiB, "1023 MiB"),
        (1023.99 * MiB, "1 GiB"),
        (1023.96 * MiB, "1 GiB"),
        (95 * GiB, "95 GiB"),
        (0.5, "0.5 B"),
        (0, "0 B"),
        (-2048, "-2 KiB"),
    ],
)
def test_binary_writes_powers_of_two(value, words):
    assert binary(value).replace(",", "") == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (8960, "8,960"),
        (453.6, "454"),
        (12345.6, "12,346"),
        (999_999.5, "1,000,000"),
        (0.5, "0.5"),
        (70e9, "70 G"),
        (1_234_567, "1.23 M"),
        (math.inf, "inf"),
        (-3, "-3"),
    ],
)
def test_counts_are_written_as_people_say_them(value, words):
    assert count(value) == words


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (si(2.5, digits=1), "3"),  # Python alone gives 2, the even one
        (si(-2.5, digits=1), "-3"),
        (si(2.675), "2.68"),  # as a double a little below
        (si(2.674999), "2.67"),
        (si(999.5, "B/s"), "1 kB/s"),
        (binary(2.5 * GiB, digits=1), "3 GiB"),
        (percent(0.125), "13%"),
        (count(10.25), "10.3"),
        (count(1_000_500_000.0, 4), "1.001 G"),
    ],
)
def test_halves_are_rounded_away_from_zero(written, words):
    assert written == words


def test_percent_writes_a_share_in_significant_figures():
    assert [percent(x) for x in (0.256, 1, 0.0007, 12)] == ["26%", "100%", "0.07%", "1,200%"]


def test_memory_prefixes_are_binary_and_link_prefixes_decimal():
    assert units.GiB / units.GB == pytest.approx(1.0737, abs=1e-4)
    assert (units.KiB, units.MiB, units.GiB, units.TiB) == (1024, 1024**2, 1024**3, 1024**4)


@pytest.mark.parametrize(
    ("name", "nbytes"),
    [("fp32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1), ("int8", 1), ("fp4", 0.5), ("int4", 0.5)],
)
def test_data_types_are_found_by_name(name, nbytes):
    assert (units.dtype(name).bytes, str(units.dtype(name))) == (nbytes, name)


def test_an_unknown_data_type_names_the_known_ones():
    with pytest.raises(ValueError, match=r"'bfloat' is not a data type here.*fp32, bf16"):
        units.dtype("bfloat")


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("43.6 µs", 43.6e-6, "s"),
        ("43.6 μs", 43.6e-6, "s"),
        ("43.6us", 43.6e-6, "s"),
        ("2 min", 120, "s"),
        ("1.5 GiB", 1.5 * 2**30, "B"),
        ("1.5 GB", 1.5e9, "B"),
        ("8 Gb", 1e9, "B"),
        ("100 Gbps", 12.5e9, "B/s"),
        ("2^20", 2**20, ""),
        ("2**20", 2**20, ""),
        ("2²⁰", 2**20, ""),
        ("10⁻⁶ s", 1e-6, "s"),
        ("-2^2", -4, ""),
        ("8.2e11 B/s", 8.2e11, "B/s"),
        ("3 × 10^6", 3e6, ""),
        ("3·10⁶", 3e6, ""),
        ("2x10**3 B", 2000, "B"),
        ("40%", 0.4, ""),
        ("−5", -5, ""),
        ("1,000,000", 1e6, ""),
        ("1_000", 1000, ""),
        (".5", 0.5, ""),
        ("240 FLOPs/byte", 240, "FLOP/B"),
        ("2 GB/ms", 2e12, "B/s"),
        ("4 k tokens", 4000, "tokens"),
        ("12 MB/layer", 12e6, "B/layer"),
        ("5 EB", 5e18, "B"),
        ("5E3", 5000, ""),
        ("8.6 billion", 8.6e9, ""),
        ("4 million tokens", 4e6, "tokens"),
        ("6.3 weeks", 6.3 * 7 * 86400, "s"),
        ("798 ×", 798, ""),
        ("3 ki", 3, None),
    ],
)
def test_parse_reads_what_people_write(text, value, unit):
    if unit is None:
        with pytest.raises(ValueError, match="is not a known unit"):
            parse(text)
    else:
        assert parse(text) == Quantity(pytest.approx(value), unit)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a number"),
        ("abc", "not a number"),
        ("1/3", "not a number"),
        ("1,5", "decimal point"),
        ("12,34", "comma"),
        ("1e400", "too large"),
        ("2^9999", "too large"),
        ("0^-1", "too large"),
        ("5 parsecs", "'parsecs' in '5 parsecs'"),
        ("1 2", "not a number"),
        ("٣", "not a number"),
        ("9" * 400, "too large"),
    ],
)
def test_parse_says_what_it_could_not_read(text, says):
    with pytest.raises(ValueError, match=says):
        parse(text)
