"""Single changes to the deployments of Table 4, and what its short cuts cost.

One seed each, in the window ``BRIEF``: a change is compared with ``alone`` (load 0.15) or
``over`` (load 1.05), which are the unchanged deployments in this window, and with nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.reproduce.study import Variant
from testbed.reproduce.wanload import (
    ALONE,
    BRIEF,
    BUFFER,
    CDC,
    OVER,
    PDD,
    SCENARIOS,
    SHORT,
    WORDS,
    point,
    rate_for,
)

BASES = {ALONE: "alone", OVER: "over"}
"""Load to the name of the unchanged pair."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One change.

    Attributes:
        name: in the labels of its runs, after the deployment.
        load: of the WAN; that of its base.
        both: CDC-PD has it as well; a change of H it has not, and PDD is compared with the base.
    """

    name: str
    words: str
    overrides: tuple[str, ...]
    load: float
    both: bool = True

    @property
    def pair(self) -> tuple[str, str]:
        """Labels of PDD's run and of CDC-PD's that it is compared with."""
        return f"{PDD}-{self.name}", f"{CDC}-{self.name if self.both else BASES[self.load]}"


CAUSES = (
    Cause("alone", "as published, 40 s", (), ALONE),
    Cause(
        "loss-129", "random loss of 129 ppm a frame",
        ("links.wan.segmentation=frame", "links.wan.loss={kind: random, share: 129 ppm}"), ALONE,
    ),
    Cause("jitter", "the profile wan-10g-jitter", ("links.wan={profile: wan-10g-jitter}",), ALONE),
    Cause(
        "congested", "the profile wan-10g-congested",
        ("links.wan={profile: wan-10g-congested}",), ALONE,
    ),
    Cause("pool-1", "one connection a pair", ("pool.size=1",), ALONE),
    Cause("rtt-100", "RTT 100 ms", ("links.wan.rtt=100 ms",), ALONE),
    Cause("rate-8", "8 requests/s", ("workload.arrivals={kind: poisson, rate: 8 /s}",), ALONE),
    Cause(
        "bursty", "arrivals in bursts: 1 s at 23 /s, 1 s of silence",
        ("workload.arrivals={kind: bursty, rate: 11.5 /s, burst: 1 s, silence: 1 s}",), ALONE,
    ),
    Cause("h-80", "H of 80 %", ("serving.pipeline.threshold=80 %",), ALONE, both=False),
    Cause("over", "no change, 40 s", (), OVER),
    Cause("over-h-80", "H of 80 %", ("serving.pipeline.threshold=80 %",), OVER, both=False),
    Cause(
        "over-rtt-60", "RTT 60 ms, the buffer as long in time",
        ("links.wan.rtt=60 ms", "links.wan.buffer=0.893 bdp"), OVER,
    ),
    Cause("over-pool-1", "one connection a pair", ("pool.size=1",), OVER),
    Cause("over-buffer", "a buffer of half the length", ("links.wan.buffer=1.34 bdp",), OVER),
)  # fmt: skip
"""At ``ALONE`` on the published line, at ``OVER`` on one as narrow as in the main runs."""


def sensitivity() -> tuple[Variant, ...]:
    """The runs of ``CAUSES``."""
    return tuple(
        _run(deployment, cause)
        for cause in CAUSES
        for deployment in ((PDD, CDC) if cause.both else (PDD,))
    )


def proofs() -> tuple[Variant, ...]:
    """What the short cuts cost: answers of full length; bytes scaled instead of rates."""
    narrow = point(CDC, 0.9, BRIEF, 1)
    wider = ("shape.kv=deepseek-v3", "shape.precision=fp8")
    buffers = ("tcp.send_buffer=224 MiB", "tcp.receive_buffer=224 MiB")
    return (
        Variant(
            "full", SCENARIOS[PDD], "PDD at WAN load 1.05, 40 s, answers of full length",
            (BRIEF, BUFFER), 1, f"{PDD}-over", tuned=lambda seed: (rate_for(OVER, BRIEF, seed),),
        ),
        Variant(
            "rates", SCENARIOS[CDC], "CDC-PD at WAN load 0.9, 40 s, by a lower rate",
            narrow.overrides, 1, tuned=narrow.tuned,
        ),
        Variant(
            "bytes", SCENARIOS[CDC], "the same by 7.0 times the bytes (the KV of deepseek-v3)",
            (BRIEF, SHORT, BUFFER, *wider), 1, "rates",
            tuned=lambda seed: (rate_for(0.9, BRIEF, seed, wider),),
        ),
        Variant(
            "bytes-buffers", SCENARIOS[CDC], "and socket buffers of 7 times the size as well",
            (BRIEF, SHORT, BUFFER, *wider, *buffers), 1, "rates",
            tuned=lambda seed: (rate_for(0.9, BRIEF, seed, wider),),
        ),
    )  # fmt: skip


def _run(deployment: str, cause: Cause) -> Variant:
    base = BASES[cause.load]
    narrowed = cause.load == OVER
    buffer = () if any("wan.buffer" in one for one in cause.overrides) else (BUFFER,)
    return Variant(
        label=f"{deployment}-{cause.name}",
        scenario=SCENARIOS[deployment],
        words=f"{WORDS[deployment]}{f' at WAN load {OVER:g}' if narrowed else ''}, {cause.words}",
        overrides=(BRIEF, SHORT, *(buffer if narrowed else ()), *cause.overrides),
        seeds=1,
        against="" if cause.name == base else f"{deployment}-{base}",
        tuned=(lambda seed: (rate_for(OVER, BRIEF, seed),)) if narrowed else None,
    )
