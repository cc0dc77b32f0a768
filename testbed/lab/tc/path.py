"""Where each stage of each direction sits in a wire."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.link import LinkSpec
from testbed.contract.network import Link
from testbed.lab.tc.applied import Direction


@dataclass(frozen=True, slots=True)
class Way:
    """One direction through a wire, device by device.

    ``enters`` redirects to ``rate``; ``rate`` is a veth whose peer is ``crosses``;
    ``crosses`` redirects to ``leaves``, which carries the delay stage.
    """

    link: str
    direction: Direction
    spec: LinkSpec
    enters: str
    rate: str
    crosses: str
    leaves: str

    @property
    def subject(self) -> str:
        """For messages."""
        return f"{self.link} {self.direction.value}"


def ways(link: Link) -> tuple[Way, Way]:
    """Forward and backward."""
    one, other = link.inner
    a, b = link.a.wire_device, link.b.wire_device
    return (
        Way(link.name, Direction.FORWARD, link.forward, a, one, other, b),
        Way(link.name, Direction.BACKWARD, link.backward, b, other, one, a),
    )
