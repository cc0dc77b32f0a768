"""One direction of one link on the bench: its wire, its ends, its expected behaviour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from testbed.contract.network import Link
from testbed.errors import FidelityError
from testbed.fidelity.frame import ETHERNET, Template, plain, superframe
from testbed.fidelity.precision import EXACT, Precision
from testbed.fidelity.probe import Burst, Place
from testbed.fidelity.row import CalibrationRow
from testbed.lab.tc import Direction, Wire
from testbed.lab.tc.path import Way
from testbed.shaping.compile import compile_link
from testbed.shaping.netem_model import Fate
from testbed.shaping.qdisc import Netem, Pacer, Police
from testbed.shaping.ratespec import exact_ns
from testbed.shaping.wander import delay_at

LIVE_TRIES = 5
"""Measurements of one quantity on a live machine before it counts as wrong."""


@dataclass(frozen=True, slots=True)
class Bench:
    """``source`` sends, ``middle`` listens between the stages, ``sink`` at the far end."""

    link: Link
    way: Way
    wire: Wire
    source: Place
    middle: Place
    sink: Place
    precision: Precision = EXACT

    @property
    def rate(self) -> Netem | None:
        """The compiled rate stage, if any."""
        stages = compile_link(self.way.spec, self.way.subject).rate
        return next((spec for spec in stages if isinstance(spec, Netem)), None)

    @property
    def police(self) -> Police | None:
        """The compiled buffer bound, if any."""
        stages = compile_link(self.way.spec, self.way.subject).rate
        return next((spec for spec in stages if isinstance(spec, Police)), None)

    @property
    def delay(self) -> Netem:
        """The compiled delay stage."""
        for spec in compile_link(self.way.spec, self.way.subject).delay:
            if isinstance(spec, Netem):
                return spec
        raise FidelityError("calibrate", self.way.subject, "no delay stage was compiled")

    @property
    def pacer(self) -> Pacer | None:
        """The compiled departure times of jitter that keeps order, if any."""
        stages = compile_link(self.way.spec, self.way.subject).delay
        return next((spec for spec in stages if isinstance(spec, Pacer)), None)

    def largest(self) -> Template:
        """The largest frame that may cross this direction."""
        spec = self.way.spec
        if spec.superframe_bytes > spec.mtu:
            return superframe(spec.superframe_bytes, spec.mtu)
        return self.full()

    def full(self) -> Template:
        """A frame of exactly the MTU."""
        return plain(self.way.spec.mtu + ETHERNET)

    @property
    def longest_ns(self) -> int:
        """Longest time in the delay stage; whoever sends waits that long for an idle link."""
        spec = self.way.spec
        spread = spec.jitter.spread_ns if spec.jitter else 0
        return spec.delay_ns + 4 * spread + (spec.slot.max_ns if spec.slot else 0)

    def delays_ns(self, fate: Fate, burst: Burst, exit_ns: int) -> list[int]:
        """Expected delays of the copies of a frame that left the rate stage at ``exit_ns``."""
        pacer = self.pacer
        if pacer is None:
            return sorted(fate.delays_ns)
        return [delay_at(pacer, exit_ns + burst.monotonic_ns) for _ in fate.delays_ns]

    def serialisation_ns(self, wire_bytes: int) -> int:
        """Time of one frame in the rate stage."""
        return exact_ns(wire_bytes, self.rate.rate) if self.rate else 0

    def row(
        self, quantity: str, requested: str, measured: str, tolerance: str, ok: bool
    ) -> CalibrationRow:
        """A row about this direction."""
        return CalibrationRow(
            link=self.link.name,
            direction=self.way.direction.value,
            quantity=quantity,
            requested=requested,
            measured=measured,
            tolerance=tolerance,
            ok=ok,
        )


def bench_of(
    link: Link, way: Way, wire: Wire, a: Place, b: Place, precision: Precision = EXACT
) -> Bench:
    """The bench of one direction; ``a`` and ``b`` are the link's ends."""
    source, sink = (a, b) if way.direction is Direction.FORWARD else (b, a)
    return Bench(link, way, wire, source, Place(wire.path, way.crosses), sink, precision)


def settled(precision: Precision, measure: Callable[[], CalibrationRow]) -> CalibrationRow:
    """What ``measure`` finds; on a live machine the first good one of ``LIVE_TRIES``.

    There a stall of the machine looks like a slow link, but no link is ever better than it is.
    """
    row = measure()
    tries = LIVE_TRIES if precision.live else 1
    while not row.ok and (tries := tries - 1):
        row = measure()
    return row
