"""A small study and figures on which its one claim holds."""

from __future__ import annotations

from testbed.reproduce.extent import Extent
from testbed.reproduce.outcome import Outcomes
from testbed.reproduce.study import Claim, Contrast, Judged, Measure, Published, Study, Variant

TTFT = "ttft.p90_s"


def variants(extent: Extent) -> tuple[Variant, ...]:
    return (
        Variant("a", "pdd-hello", "the first"),
        Variant("b", "pdd-hello", "the second", ("links.wan.rtt=40 ms",)),
        Variant("b-far", "pdd-hello", "b, farther", seeds=1, against="b"),
    )


def lower(out: Outcomes) -> Judged:
    a, b = out.mean("a", TTFT), out.mean("b", TTFT)
    return Judged(f"{a} and {b}", [] if a < b else ["a is not lower"])


STUDY = Study(
    name="example",
    title="Example",
    question="Is a lower?",
    variants=variants,
    measures=(Measure(TTFT, "First token"),),
    contrasts=(Contrast("cut_share", "a below b", "a", "b", TTFT, lambda x, y: 1 - x / y),),
    published=(Published("a", TTFT, 9.8, "note", "Table 4"),),
    claims=(Claim("a-lower", "a is lower.", lower),),
    assumptions=("nothing",),
)
GOOD = {
    ("a", TTFT): {1: 1.0, 2: 3.0},
    ("b", TTFT): {1: 4.0, 2: 4.0},
    ("b-far", TTFT): {1: 8.0},
}
