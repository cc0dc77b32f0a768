"""Addresses and hardware addresses, by position only.

::

    10.<site>.<n>.0/30    access link n of a site: router .1, agent .2   (sites from 1)
    10.<100+t>.<k>.0/30   leg k of trunk t: first site's router .1, second's .2
    02:7d:…               locally administered, counted in build order

In the compose lab subnets are /29: Docker wants an address for a wire, too (decision 7).
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.contract.segment import PREFIX as SEGMENT_PREFIX

PREFIXES = {"mininet": 30, "compose": SEGMENT_PREFIX}
"""Prefix length of a link's subnet, by lab."""
TRUNK_BASE = 100


@dataclass(frozen=True, slots=True)
class Subnet:
    """Of one link: two hosts, ``first`` and ``second``."""

    second_octet: int
    third_octet: int

    @property
    def first(self) -> str:
        """Address of the router, or of the first site's router."""
        return f"10.{self.second_octet}.{self.third_octet}.1"

    @property
    def second(self) -> str:
        """Address of the agent, or of the second site's router."""
        return f"10.{self.second_octet}.{self.third_octet}.2"


def access_subnet(site: int, number: int) -> Subnet:
    """Access link ``number`` (from 1) of site ``site`` (from 0)."""
    return Subnet(site + 1, number)


def leg_subnet(trunk: int, leg: int) -> Subnet:
    """Leg ``leg`` (from 1) of trunk ``trunk`` (from 0)."""
    return Subnet(TRUNK_BASE + trunk, leg)


def site_network(site: int) -> str:
    """All access links of a site."""
    return f"10.{site + 1}.0.0/16"


def with_prefix(address: str, lab: str) -> str:
    """``address`` as an interface carries it."""
    return f"{address}/{PREFIXES[lab]}"


def docker_mac(address: str) -> str:
    """The hardware address that Docker gives a container with this IPv4 address.

    Engine 20.10 gives it whatever one asks for; later ones give what one asks for.
    """
    return "02:42:" + ":".join(f"{int(part):02x}" for part in address.split("."))


class MacCounter:
    """Hands out hardware addresses in build order: the same plan, the same addresses."""

    def __init__(self) -> None:
        self._next = 1

    def take(self) -> str:
        """The next address."""
        number = self._next
        self._next += 1
        return "02:7d:" + ":".join(f"{byte:02x}" for byte in number.to_bytes(4, "big"))
