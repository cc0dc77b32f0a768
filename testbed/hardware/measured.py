"""A hardware profile fitted to what was measured: least squares, no time below zero. Pure.

::

    prefill(u, c)   = base + max(floor, u x token + u x (c + u/2) x attention)
    decode(b, k, e) = base + b x sequence + k x context + e x extra
    copy(n)         = base + n x byte

Each point counts by its relative error, so that short passes weigh as much as long
ones; of its runs the median is taken. Short passes are bound by reading the weights: the
floor is theirs, the line is fitted to the others, and which are short is what fits best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from testbed.contract.agent import Hardware
from testbed.contract.record import Record

_USABLE = 0.9
"""Share of free device memory left for KV, as in the shipped profiles."""

Matrix = NDArray[np.float64]


class PrefillPoint(Record):
    """A pass over ``tokens`` behind ``context`` cached ones, and what each run took."""

    tokens: int
    context: int
    seconds: tuple[float, ...] = Field(min_length=1)


class DecodePoint(Record):
    """A step of ``batch`` sequences with ``context`` tokens in all and ``extra`` fed beyond one."""

    batch: int
    context: int
    extra: int
    seconds: tuple[float, ...] = Field(min_length=1)


class CopyPoint(Record):
    """A copy between host and device, one way."""

    bytes: int
    seconds: tuple[float, ...] = Field(min_length=1)


class Measured(Record):
    """What ``python -m testbed_agents.model.measure`` prints."""

    model: str
    device: str
    device_name: str
    torch: str
    dtype: str
    threads: int
    capability: str
    runs: int
    kv_token_bytes: int
    free_bytes: int
    prefill: tuple[PrefillPoint, ...] = Field(min_length=3)
    decode: tuple[DecodePoint, ...] = Field(min_length=4)
    copy_: tuple[CopyPoint, ...] = Field(min_length=2, alias="copy")


@dataclass(frozen=True, slots=True)
class Residual:
    """How far a fitted formula is from its points: shares of the measured time."""

    what: str
    points: int
    middle: float
    worst: float

    def __str__(self) -> str:
        return (
            f"{self.what}: {self.points} points, relative error median "
            f"{self.middle:.1%}, largest {self.worst:.0%}"
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """A profile and how well it fits."""

    hardware: Hardware
    residuals: tuple[Residual, ...]


def fit(measured: Measured, name: str, source: str) -> Fit:
    """The profile of one measured device.

    Raises:
        ValueError: points do not determine the formulas.
    """
    (base, token, attention, floor), prefill = _prefill(measured.prefill)
    (step, sequence, context, extra), decode = _line(
        "decode",
        [(1, p.batch, p.context, p.extra) for p in measured.decode],
        [p.seconds for p in measured.decode],
    )
    (fixed, byte), copies = _line(
        "copy", [(1, p.bytes) for p in measured.copy_], [p.seconds for p in measured.copy_]
    )
    hardware = Hardware(
        name=name,
        source=source,
        prefill_base_s=base,
        prefill_token_s=token,
        prefill_attention_s=attention,
        prefill_floor_s=floor,
        decode_base_s=step,
        decode_sequence_s=sequence,
        decode_context_s=context,
        decode_extra_token_s=extra,
        max_batch=max(p.batch for p in measured.decode),
        copy_base_s=fixed,
        copy_byte_s=byte,
        kv_memory_bytes=int(_USABLE * measured.free_bytes),
    )
    return Fit(hardware, (prefill, decode, copies))


def _prefill(points: Sequence[PrefillPoint]) -> tuple[tuple[float, ...], Residual]:
    """Base, token, attention and floor: the best over all lengths at which the line may begin."""
    times = np.array([median(point.seconds) for point in points])
    best: tuple[float, ...] = ()
    least, worst = float("inf"), np.zeros(0)
    for first in sorted({point.tokens for point in points}):
        long = [point for point in points if point.tokens >= first]
        terms = [_terms(point) for point in long]
        try:
            found, _ = _line("prefill", terms, [point.seconds for point in long])
        except ValueError:
            if not best:
                raise
            break
        short = [median(point.seconds) for point in points if point.tokens < first]
        floor = max(0.0, median(short) - found[0]) if short else 0.0
        line = np.array([_terms(point) for point in points]) @ np.array(found)
        errors = np.abs(np.maximum(line, found[0] + floor) / times - 1)
        if float((errors**2).sum()) < least:
            best, least, worst = (*found, floor), float((errors**2).sum()), errors
    return best, Residual("prefill", len(points), float(np.median(worst)), float(worst.max()))


def _terms(point: PrefillPoint) -> tuple[float, ...]:
    return (1, point.tokens, point.tokens * (point.context + point.tokens / 2))


def _line(
    what: str, terms: Sequence[tuple[float, ...]], seconds: Sequence[Sequence[float]]
) -> tuple[tuple[float, ...], Residual]:
    """Coefficients of the terms, none below zero, and their residual."""
    times = np.array([median(runs) for runs in seconds])
    matrix = np.array(terms, dtype=np.float64) / times[:, None]
    if np.linalg.matrix_rank(matrix / matrix.max(axis=0)) < matrix.shape[1]:
        raise ValueError(f"{what}: {len(times)} points do not determine {matrix.shape[1]} times")
    found = _non_negative(matrix)
    errors = np.abs(matrix @ found - 1)
    residual = Residual(what, len(times), float(np.median(errors)), float(errors.max()))
    return tuple(float(value) for value in found), residual


def _non_negative(matrix: Matrix) -> Matrix:
    """The x >= 0 that brings ``matrix`` x closest to ones: the best over all sets of terms."""
    rows, columns = matrix.shape
    scale = matrix.max(axis=0)
    best, least = np.zeros(columns), float(rows)
    for count in range(1, columns + 1):
        for chosen in map(list, combinations(range(columns), count)):
            part = np.linalg.lstsq(matrix[:, chosen] / scale[chosen], np.ones(rows), rcond=None)[0]
            if (part < 0).any():
                continue
            found = np.zeros(columns)
            found[chosen] = part / scale[chosen]
            error = float(((matrix @ found - 1) ** 2).sum())
            if error < least:
                best, least = found, error
    return best
