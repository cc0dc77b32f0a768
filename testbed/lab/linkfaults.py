"""Links under a plan's faults: each is what ``shaping.faulted`` makes of all that act on it.

So any number of them may act at once, in any order, and each can end without the others.
"""

from __future__ import annotations

from testbed.contract.fault import LinkFault
from testbed.contract.link import LinkSpec
from testbed.contract.network import Network
from testbed.lab.sampler import Sampler
from testbed.lab.wires import Wires
from testbed.shaping.faulted import faulted


class LinkFaults:
    """What acts on which link. Raises LabError and FidelityError as ``Wires`` does."""

    def __init__(self, network: Network, wires: Wires, sampler: Sampler) -> None:
        self._wires = wires
        self._sampler = sampler
        self._planned = {link.name: link for link in network.links}
        self._acting: dict[str, dict[str, LinkFault]] = {}
        """The plan's faults that are in force on each link, by name."""
        self._cut: set[str] = set()
        """Links that the plan's faults keep down."""

    def strike(self, fault: LinkFault, link: str) -> None:
        """A fault of the plan comes into force on a link."""
        self._acting.setdefault(link, {})[fault.name] = fault
        self._become(link)

    def spare(self, fault: LinkFault, link: str) -> None:
        """It ends there; what else acts on the link goes on."""
        del self._acting[link][fault.name]
        self._become(link)

    def _become(self, link: str) -> None:
        """Makes a link what all faults that act on it make of it."""
        acting = tuple(self._acting[link].values())
        changing = [one for one in acting if not one.cuts]
        planned = self._planned[link]
        forward, backward = (
            faulted(spec, (one.effect for one in changing if getattr(one, way)), link)
            for way, spec in (("forward", planned.forward), ("backward", planned.backward))
        )
        now = self._wires.link(link)
        if (now.forward, now.backward) != (forward, backward):
            self.shape(link, forward, backward)
        cut = any(one.cuts for one in acting)
        if cut and link not in self._cut:
            self._wires.cut(link)
            self._cut.add(link)
        elif not cut and link in self._cut:
            self._wires.mend(link)
            self._cut.discard(link)

    def shape(self, link: str, forward: LinkSpec, backward: LinkSpec) -> None:
        """Makes a link another one, and goes on counting what passes it."""
        self._sampler.sample_now()  # what is shaped from scratch counts from nothing
        if not self._wires.reshape(link, forward, backward):
            self._sampler.renew((link,))
