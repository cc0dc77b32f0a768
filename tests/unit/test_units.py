"""Quantities: exact parsing, canonical text, and refusals that name a remedy."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from testbed.errors import UnitError
from testbed.units import Duration, Frequency, Load, Quantity, Rate, Share, Size, Tokens

pytestmark = pytest.mark.unit

KINDS: tuple[type[Quantity], ...] = (Duration, Frequency, Load, Rate, Share, Size, Tokens)

quantities = st.sampled_from(KINDS).flatmap(lambda kind: st.integers(0, kind.MAXIMUM).map(kind))


@pytest.mark.parametrize(
    ("kind", "text", "steps"),
    [
        (Rate, "10 Gbit/s", 10_000_000_000),
        (Rate, "2.5Gbit/s", 2_500_000_000),
        (Rate, "400 Gbit/s", 400_000_000_000),
        (Duration, "29.75 ms", 29_750_000),
        (Duration, "2 us", 2_000),
        (Duration, "1.5 h", 5_400_000_000_000),
        (Size, "4 MiB", 4_194_304),
        (Size, "4.56 MB", 4_560_000),
        (Share, "90 %", 900_000_000_000_000),
        (Share, "129 ppm", 129_000_000_000),
        (Load, "104 %", 1_040_000_000_000_000),
        (Tokens, "64 Kitokens", 65_536),
        (Tokens, "65536 tokens", 65_536),
        (Frequency, "80 /s", 80_000_000),
        (Frequency, "30 /min", 500_000),
    ],
)
def test_text_is_read_exactly(kind: type[Quantity], text: str, steps: int) -> None:
    assert kind.parse(text).steps == steps


@given(quantities)
def test_canonical_text_reads_back_to_the_same_value(quantity: Quantity) -> None:
    assert type(quantity).parse(str(quantity)) == quantity


@given(quantities)
def test_a_quantity_survives_json(quantity: Quantity) -> None:
    adapter = TypeAdapter(type(quantity))
    assert adapter.validate_json(adapter.dump_json(quantity)) == quantity


@given(
    st.sampled_from([(kind, unit) for kind in KINDS for unit in kind.UNITS]),
    st.decimals(0, 10**6, places=6, allow_nan=False),
)
def test_parsing_is_exact_or_refused(choice: tuple[type[Quantity], str], number: Decimal) -> None:
    kind, unit = choice
    exact = Fraction(number) * kind.UNITS[unit]
    try:
        steps = kind.parse(f"{number:f} {unit}").steps
    except UnitError:
        assert exact.denominator != 1 or exact > kind.MAXIMUM
    else:
        assert steps == exact


@pytest.mark.parametrize(
    ("kind", "text", "cause"),
    [
        (Duration, "10", "has no unit"),
        (Duration, "10 sec", "unknown unit 'sec'"),
        (Duration, "-1 ms", "is negative"),
        (Duration, "nan ms", "is not a number"),
        (Duration, "inf s", "is not a number"),
        (Duration, "1e3 ms", "is not a number"),
        (Duration, "", "is not a number"),
        (Duration, "0.5 ns", "finer"),
        (Duration, "11000000 s", "too large"),
        (Rate, "10 GB/s", "unknown unit"),
        (Rate, "10 gbit", "unknown unit"),
        (Rate, "10  Gbit/s", "is not a number"),
        (Size, "4 MBit", "unknown unit"),
        (Share, "101 %", "too large"),
        (Share, "0.9", "has no unit"),
        (Tokens, "1.5 tokens", "finer"),
        (Frequency, "80 Hz", "unknown unit"),
        (Size, "9" * 400 + " B", "is too large"),
    ],
)
def test_bad_text_is_refused_with_its_cause(kind: type[Quantity], text: str, cause: str) -> None:
    with pytest.raises(UnitError) as caught:
        kind.parse(text)
    assert cause in caught.value.cause
    assert caught.value.remedy


def test_an_unknown_unit_names_the_allowed_ones() -> None:
    with pytest.raises(UnitError, match="ns, us, ms, s, min, h"):
        Duration.parse("3 d")


@pytest.mark.parametrize("value", [10, 10.5, True, None, ["10 ms"], {"ms": 10}])
def test_only_text_enters_a_model(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Duration).validate_python(value)


@pytest.mark.parametrize("steps", [-1, Duration.MAXIMUM + 1])
def test_a_value_out_of_range_cannot_be_made(steps: int) -> None:
    with pytest.raises(UnitError):
        Duration(steps)


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Duration(0), "0 ms"),
        (Duration(29_750_000), "29.75 ms"),
        (Rate(2_500_000_000), "2.5 Gbit/s"),
        (Size(65_536), "64 KiB"),
        (Size(9_000), "9 kB"),
        (Size(4_560_000), "4.56 MB"),
        (Share(0), "0 %"),
        (Load(1_040_000_000_000_000), "104 %"),
    ],
)
def test_canonical_text_is_what_an_author_would_write(quantity: Quantity, text: str) -> None:
    assert str(quantity) == text


@pytest.mark.parametrize("kind", KINDS)
def test_absurd_numbers_are_too_large_or_too_fine_and_echoed_short(kind: type[Quantity]) -> None:
    unit = kind.CANONICAL[-1]
    for number, cause in (("9" * 100_000, "is too large"), ("0." + "1" * 100_000, "is finer")):
        with pytest.raises(UnitError, match=cause) as caught:
            kind.parse(f"{number} {unit}")
        assert len(str(caught.value)) < 300
    with pytest.raises(UnitError, match="unknown unit") as caught:
        kind.parse("1 " + "x" * 100_000)
    assert len(str(caught.value)) < 400
