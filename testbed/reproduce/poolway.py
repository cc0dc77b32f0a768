"""The pools that the study compares, and the runs that it makes of them.

All runs of one distribution and seed have the same arrivals and hits; the load rescales their
sizes by one factor. A pool of 160 is never or rarely used up, so what a line of waiting
transfers does shows with 16.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from testbed.reproduce.extent import Extent
from testbed.reproduce.study import Variant

WIDE, NARROW = "wide", "narrow"
LIGHT, FULL = "light", "full"
SCENARIOS = {WIDE: "pool-wide-skewed", NARROW: "pool-narrow-even"}
LOADS = {LIGHT: "15 %", FULL: "104 %"}
"""The load that the paper's 11.5 requests/s put on the line, and that of its Table 2."""

_CHUNK = "chunk: 2 MiB, source_port: 20000"
_FEW = "pool.size={few}"
_SMALL = "pool.order=smallest-first"


@dataclass(frozen=True, slots=True)
class Way:
    """One pool; ``{few}`` stands for a number that depends on the extent.

    Attributes:
        words: for people.
        overrides: of the two scenarios, whose pool is a FIFO of 160.
        loads: at which it is run.
        excused: of its runs, as in ``Variant``.
    """

    name: str
    words: str
    overrides: tuple[str, ...] = ()
    loads: tuple[str, ...] = (LIGHT, FULL)
    excused: tuple[str, ...] = ()


WAYS = (
    Way("fifo", "160 that stand (fifo)"),
    Way(
        "fifo-warm", "the same without slow start after idle",
        ("tcp.slow_start_after_idle=false",), (LIGHT,),
    ),
    Way("per-transfer", "a fresh one each", (f"pool={{discipline: per-transfer, {_CHUNK}}}",)),
    Way("lifo", "as many as it takes, the last used first (lifo)",
        (f"pool={{discipline: lifo, {_CHUNK}}}",)),
    Way("lanes", "4 lanes, 1 s of patience", (f"pool={{discipline: lanes, {_CHUNK}}}",),
        excused=("requests-failed", "answered-once")),
    Way("stripes", "160 that stand, up to 4 a transfer", ("pool.stripes=4",)),
    Way("few", "{few} that stand", (_FEW,), (FULL,)),
    Way("few-deadline", "{few}, earliest deadline first",
        (_FEW, "pool.order=earliest-deadline"), (FULL,)),
    Way("few-small", "{few}, smallest first", (_FEW, _SMALL), (FULL,)),
    Way("few-preempt", "{few}, smallest first, pre-emptive",
        (_FEW, _SMALL, "pool.preempt=true"), (FULL,)),
)  # fmt: skip
_SIZE = {
    Extent.QUICK: "window={warm_up: 1 s, measure: 4 s, drain: 120 s}",
    Extent.NORMAL: "window={warm_up: 5 s, measure: 20 s, drain: 120 s}",
    Extent.FULL: "window={warm_up: 10 s, measure: 60 s, drain: 120 s}",
}
_TENTH = ("links.wan.rate=1 Gbit/s", "links.wan.buffer=8 MiB")
_QUICK = {
    (WIDE, LIGHT): ("fifo", "per-transfer", "lifo"),
    (NARROW, LIGHT): ("per-transfer", "lifo"),
    (WIDE, FULL): ("fifo", "lanes", "few", "few-small"),
    (NARROW, FULL): (),
}
"""The full load is that of a tenth of the line; the light one is of the whole line, because
what a fresh connection costs is counted in round trips of a wide one."""


def label(hits: str, load: str, way: str) -> str:
    """``wide-light-fifo``."""
    return f"{hits}-{load}-{way}"


FEW = {Extent.QUICK: 8, Extent.NORMAL: 16, Extent.FULL: 16}
"""So many that transfers wait; on a tenth of the line half as many."""


def ways(extent: Extent, hits: str, load: str) -> tuple[Way, ...]:
    """The pools that are run with this distribution at this load."""
    few = str(FEW[extent])
    return tuple(
        replace(
            way, words=way.words.replace("{few}", few),
            overrides=tuple(one.replace("{few}", few) for one in way.overrides),
        )
        for way in WAYS
        if load in way.loads and (extent is not Extent.QUICK or way.name in _QUICK[hits, load])
    )  # fmt: skip


def variants(extent: Extent) -> tuple[Variant, ...]:
    """All runs: quick ones are few and short."""
    return tuple(
        Variant(
            label(hits, load, way.name), SCENARIOS[hits],
            f"{hits}, load {LOADS[load]}: {way.words}",
            (
                _SIZE[extent], f"workload.offered_load={LOADS[load]}",
                *(_TENTH if extent is Extent.QUICK and load == FULL else ()),
                *way.overrides,
            ),
            excused=way.excused,
        )
        for hits in (WIDE, NARROW)
        for load in (LIGHT, FULL)
        for way in ways(extent, hits, load)
    )  # fmt: skip
