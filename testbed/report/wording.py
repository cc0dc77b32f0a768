"""Numbers as people read them: three significant digits and a fitting unit."""

from __future__ import annotations

NOTHING = "n/a"


def seconds(value: float | None) -> str:
    """Return a duration given in seconds, as us, ms or s."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size == 0:
        return "0 s"
    if size < 1e-3:
        return f"{digits(value * 1e6)} µs"
    if size < 1:
        return f"{digits(value * 1e3)} ms"
    return f"{digits(value)} s"


def share(value: float | None) -> str:
    """Return a share of 1 as a percentage."""
    return NOTHING if value is None else f"{value * 100:.1f} %"


def rate(bits_per_s: float | None) -> str:
    """Return a rate given in bit/s."""
    return NOTHING if bits_per_s is None else _scaled(bits_per_s, "bit/s")


def size(count: float | None) -> str:
    """Return a number of bytes in decimal units."""
    return NOTHING if count is None else _scaled(count, "B")


def count(value: float | None) -> str:
    """Return a whole number with separators, or a fractional one to two places."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def digits(value: float) -> str:
    """Return three significant digits without an exponent."""
    if value == 0:
        return "0"
    size = abs(value)
    places = 0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
    return f"{value:,.{places}f}"


def quantity(metric: str, value: float | None) -> str:
    """Return a metric's value; the end of its name says the unit."""
    if metric.endswith("_s"):
        return seconds(value)
    if metric.endswith(("utilization", "_fraction", "offered_load", "_share", "_hit")):
        return share(value)
    if metric.endswith("bytes"):
        return size(value)
    if metric == "bcr":
        return NOTHING if value is None else digits(value)
    return count(value)


def _scaled(value: float, unit: str) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{digits(value / factor)} {prefix}{unit}"
    return f"{digits(value)} {unit}"
