"""Runs BPF instructions of ours in Python, on a packet, with the few helpers that they call.

Memory is one address space of named areas, so that an access outside of them is an error.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

DROP, CONTINUE = 2, -1
_U64 = 2**64 - 1
_CONTEXT, _STACK_TOP, _MAP = 0x1000, 0x3000, 0x5000
_STACK = 512
_WIDTH = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}


@dataclass
class Machine:
    """One packet's run: ``packet`` from its Ethernet header on, the map's one value, a clock."""

    packet: bytearray
    value: bytearray
    now_ns: int = 0
    segments: int = 1
    context: bytearray = field(default_factory=lambda: bytearray(192))

    def run(self, instructions: bytes) -> int:
        """The program's answer."""
        struct.pack_into("=I", self.context, 16, struct.unpack_from("=H", self.packet, 12)[0])
        struct.pack_into("=I", self.context, 160, len(self.packet))
        struct.pack_into("=I", self.context, 164, self.segments)
        self._stack = bytearray(_STACK)
        reg = [0] * 11
        reg[1], reg[10] = _CONTEXT, _STACK_TOP
        lines = [
            struct.unpack_from("=BBhi", instructions, at) for at in range(0, len(instructions), 8)
        ]
        at = 0
        while True:
            code, registers, offset, immediate = lines[at]
            target, source = registers & 15, registers >> 4
            at += 1
            kind, operand = code & 7, (reg[source] if code & 8 else immediate & _U64)
            if code == 0x95:
                return struct.unpack("=i", struct.pack("=I", reg[0] & 0xFFFFFFFF))[0]  # type: ignore[no-any-return]
            if code == 0x85:
                reg[0] = self._call(immediate, reg)
            elif code == 0x18:
                low, high = immediate & 0xFFFFFFFF, lines[at][3] & 0xFFFFFFFF
                reg[target] = _MAP if source == 2 else high << 32 | low
                at += 1
            elif code == 0xDC:
                reg[target] = int.from_bytes((reg[target] & 0xFFFF).to_bytes(2, "little"), "big")
            elif code == 0xDB:
                old = self._load(reg[target] + offset, 8)
                self._store(reg[target] + offset, 8, old + reg[source] & _U64)
                reg[source] = old
            elif kind == 1:
                reg[target] = self._load(reg[source] + offset, _WIDTH[code & 0x18])
            elif kind == 3:
                width = _WIDTH[code & 0x18]
                self._store(reg[target] + offset, width, reg[source] & (1 << 8 * width) - 1)
            elif kind == 7:
                reg[target] = _calculated(code & 0xF0, reg[target], operand)
            elif self._jumps(code, reg[target], operand):
                at += offset

    @staticmethod
    def _jumps(code: int, one: int, other: int) -> bool:
        if code & 0xF0 == 0:
            return True
        if code & 7 == 6:
            one, other = one & 0xFFFFFFFF, other & 0xFFFFFFFF
        return {
            0x10: one == other, 0x20: one > other, 0x30: one >= other, 0x50: one != other,
            0xA0: one < other, 0xB0: one <= other,
        }[code & 0xF0]  # fmt: skip

    def _call(self, helper: int, reg: list[int]) -> int:
        if helper == 5:
            return self.now_ns
        if helper == 26:
            data = self.packet[reg[2] : reg[2] + reg[4]]
            if len(data) < reg[4]:
                return _U64
            area, start = self._area(reg[3])
            area[start : start + reg[4]] = data
        elif helper == 9:
            area, start = self._area(reg[3])
            self.packet[reg[2] : reg[2] + reg[4]] = area[start : start + reg[4]]
        elif helper == 10:
            old = int.from_bytes(self.packet[reg[2] : reg[2] + 2], "little")
            total = (~old & 0xFFFF) + (~reg[3] & 0xFFFF) + (reg[4] & 0xFFFF)
            total = (total & 0xFFFF) + (total >> 16)
            total = (total & 0xFFFF) + (total >> 16)
            self.packet[reg[2] : reg[2] + 2] = (~total & 0xFFFF).to_bytes(2, "little")
        else:
            raise ValueError(f"helper {helper}")
        return 0

    def _area(self, address: int) -> tuple[bytearray, int]:
        for area, begin in (
            (self.context, _CONTEXT), (self._stack, _STACK_TOP - _STACK), (self.value, _MAP),
        ):  # fmt: skip
            if begin <= address < begin + len(area):
                return area, address - begin
        raise ValueError(f"address {address:#x}")

    def _load(self, address: int, width: int) -> int:
        area, at = self._area(address)
        return int.from_bytes(area[at : at + width], "little")

    def _store(self, address: int, width: int, value: int) -> None:
        area, at = self._area(address)
        area[at : at + width] = value.to_bytes(width, "little")


def _calculated(operation: int, one: int, other: int) -> int:
    match operation:
        case 0x00:
            return one + other & _U64
        case 0x10:
            return one - other & _U64
        case 0x20:
            return one * other & _U64
        case 0x30:
            return one // other if other else 0
        case 0x40:
            return one | other
        case 0x50:
            return one & other
        case 0x60:
            return one << other & _U64
        case 0x70:
            return one >> other
        case 0x90:
            return one % other if other else one
        case 0xA0:
            return one ^ other
        case 0xB0:
            return other
    raise ValueError(f"operation {operation:#x}")
