"""The scale of a run: smaller by ``size``, in slow motion by ``slow``.

``size`` is done when planning: fewer bytes over links that are as many times slower. ``slow`` is
done by clocks: emulated time = time since the barrier / slow. Only the network has to be built
slower for it, which ``paced`` does.
"""

from __future__ import annotations

from pydantic import Field

from testbed.contract.link import LinkSpec
from testbed.contract.network import Network
from testbed.contract.record import Record

RATE_STEP_BPS = 8
"""Rates are whole bytes a second."""


class Scale(Record):
    """Shares of the scenario's own sizes and times."""

    size: float = Field(default=1.0, gt=0, le=1)
    """Bytes, rates and buffers as a share of the scenario's."""
    slow: float = Field(default=1.0, ge=1)
    """How many seconds of the lab's clock one emulated second takes."""

    @property
    def full(self) -> bool:
        """Whether nothing is scaled."""
        return self.size == 1 and self.slow == 1

    def lab_ns(self, emulated_ns: int) -> int:
        """A span of emulated time on the lab's clock, in nanoseconds."""
        return emulated_ns if self.slow == 1 else round(emulated_ns * self.slow)

    def emulated_ns(self, lab_ns: int) -> int:
        """A span of the lab's clock in emulated nanoseconds."""
        return lab_ns if self.slow == 1 else int(lab_ns / self.slow)


FULL = Scale()
"""As the scenario was written."""


def paced(network: Network, slow: float) -> Network:
    """The network with rates ``slow`` times lower and times as many times longer.

    With 1 / slow it is the other way round.
    """
    if slow == 1:
        return network
    links = tuple(
        link.model_copy(
            update={"forward": _paced(link.forward, slow), "backward": _paced(link.backward, slow)}
        )
        for link in network.links
    )
    return network.model_copy(update={"links": links})


def _paced(spec: LinkSpec, slow: float) -> LinkSpec:
    jitter, slot = spec.jitter, spec.slot
    if jitter is not None:
        jitter = jitter.model_copy(update={"spread_ns": round(jitter.spread_ns * slow)})
    if slot is not None:
        slot = slot.model_copy(
            update={"min_ns": round(slot.min_ns * slow), "max_ns": round(slot.max_ns * slow)}
        )
    return spec.model_copy(
        update={
            "rate_bps": round(spec.rate_bps / slow / RATE_STEP_BPS) * RATE_STEP_BPS,
            "delay_ns": round(spec.delay_ns * slow),
            "jitter": jitter,
            "slot": slot,
        }
    )
