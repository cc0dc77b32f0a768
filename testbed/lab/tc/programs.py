"""The programs that one process put into wires: loaded, counted, remembered.

A filter keeps its program alive, and the program its map. We keep the map as well: so what a sieve
counted can be read when its filter is gone, and a gate that changes goes on where it was.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator

from testbed.lab.tc.bpf import loaded_program, make_map, read_map, write_map
from testbed.shaping import gate_program, sieve_program
from testbed.shaping.qdisc import Gate, PacketFilter

_GATE = -1


class Programs:
    """Maps by device and sieve. Devices have names of their own in the whole network."""

    def __init__(self) -> None:
        self._maps: dict[tuple[str, int], int] = {}
        self._counted: dict[tuple[str, int], int] = {}
        """Hits of filters that are gone."""

    def close(self) -> None:
        """Lets all maps go; filters that are in place keep theirs."""
        for descriptor in self._maps.values():
            os.close(descriptor)
        self._maps.clear()

    @contextlib.contextmanager
    def sieve(self, device: str, wanted: PacketFilter) -> Iterator[int]:
        """A descriptor of a fresh program, for a filter on ``device``."""
        self._retire(device, wanted.number)
        descriptor = make_map(bytes(sieve_program.COUNTERS.size))
        self._maps[device, wanted.number] = descriptor
        with loaded_program(sieve_program.program(wanted, descriptor)) as program:
            yield program

    @contextlib.contextmanager
    def gate(self, device: str, gate: Gate) -> Iterator[int]:
        """The same of a gate; its stops count from now, and what it holds keeps its turn."""
        _, last, held = self._gate_state(device)
        state = gate_program.STATE.pack(time.monotonic_ns(), last, held)
        if (device, _GATE) in self._maps:
            write_map(self._maps[device, _GATE], state)
        else:
            self._maps[device, _GATE] = make_map(state)
        with loaded_program(gate_program.program(gate, self._maps[device, _GATE])) as program:
            yield program

    def hits(self, devices: Iterable[str], number: int) -> int:
        """Frames that a sieve hit on these devices, since it was forgotten."""
        found = 0
        for device in devices:
            found += self._counted.get((device, number), 0)
            if (device, number) in self._maps:
                found += self._read(device, number)
        return found

    def held(self, devices: Iterable[str]) -> int:
        """Frames that gates on these devices held, ever."""
        return sum(self._gate_state(device)[2] for device in devices)

    def forget(self, devices: Iterable[str], number: int) -> None:
        """A fault begins: what an earlier one of its number hit counts no more."""
        for device in devices:
            self._retire(device, number)
            self._counted.pop((device, number), None)

    def _retire(self, device: str, number: int) -> None:
        if (device, number) in self._maps:
            seen = self._counted.get((device, number), 0) + self._read(device, number)
            self._counted[device, number] = seen
            os.close(self._maps.pop((device, number)))

    def _read(self, device: str, number: int) -> int:
        data = read_map(self._maps[device, number], sieve_program.COUNTERS.size)
        hit: int = sieve_program.COUNTERS.unpack(data)[1]
        return hit

    def _gate_state(self, device: str) -> tuple[int, int, int]:
        if (device, _GATE) not in self._maps:
            return 0, 0, 0
        data = read_map(self._maps[device, _GATE], gate_program.STATE.size)
        anchor, last, held = gate_program.STATE.unpack(data)
        return anchor, last, held
