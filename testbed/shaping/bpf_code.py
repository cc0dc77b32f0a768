"""BPF instructions by name, with labels to jump to: enough for programs of some fifty of them.

Instructions are eight bytes: code, registers, offset, immediate (linux/bpf.h, x86-64). Nothing
here knows what a program is for.
"""

from __future__ import annotations

import hashlib
import struct

R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FRAME = range(11)
U8, U16, U32, U64 = 0x10, 0x08, 0x00, 0x18
"""Widths of loads and stores."""
PSEUDO_MAP_VALUE = 2
_INSTRUCTION = struct.Struct("=BBhi")
_LOAD, _STORE, _STORE_ATOMIC = 0x61, 0x63, 0xDB
_FETCH_ADD = 0x01
_ALU, _JUMP, _JUMP32 = 0x07, 0x05, 0x06
_BY_REGISTER = 0x08
_OPERATIONS = {
    "add": 0x00, "sub": 0x10, "mul": 0x20, "div": 0x30, "or": 0x40, "and": 0x50, "lsh": 0x60,
    "rsh": 0x70, "mod": 0x90, "xor": 0xA0, "mov": 0xB0,
}  # fmt: skip
_CONDITIONS = {"eq": 0x10, "gt": 0x20, "ge": 0x30, "ne": 0x50, "lt": 0xA0, "le": 0xB0}
"""All unsigned."""
_SWAP_16 = 0xDC
_CALL, _EXIT, _WIDE = 0x85, 0x95, 0x18


class Code:
    """A program while it is written. Jumps go forward, to labels that are set later."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, int, int, int, int]] = []
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []

    def alu(self, operation: str, target: int, value: int) -> None:
        """``target = target operation value``, 64 bits; ``mov`` only takes the value."""
        self._line(_ALU | _OPERATIONS[operation], target, 0, 0, value)

    def alu_by(self, operation: str, target: int, source: int) -> None:
        """The same with another register."""
        self._line(_ALU | _BY_REGISTER | _OPERATIONS[operation], target, source, 0, 0)

    def swap16(self, target: int) -> None:
        """Network order to this machine's, of 16 bits; the others become 0."""
        self._line(_SWAP_16, target, 0, 0, 16)

    def wide(self, target: int, value: int, map_fd: int | None = None) -> None:
        """A 64-bit number, or the address of the value of a map of one entry."""
        source, low, high = (
            (0, value & 0xFFFFFFFF, value >> 32)
            if map_fd is None
            else (PSEUDO_MAP_VALUE, map_fd, 0)
        )
        self._line(_WIDE, target, source, 0, low)
        self._line(0, 0, 0, 0, high)

    def load(self, width: int, target: int, base: int, offset: int) -> None:
        """``target`` = what lies there."""
        self._line(_LOAD & ~0x18 | width, target, base, offset, 0)

    def store(self, width: int, base: int, offset: int, source: int) -> None:
        """Puts ``source`` there."""
        self._line(_STORE & ~0x18 | width, base, source, offset, 0)

    def add_atomic(self, base: int, offset: int, source: int) -> None:
        """Adds ``source`` to the 64 bits there; ``source`` becomes what they were."""
        self._line(_STORE_ATOMIC, base, source, offset, _FETCH_ADD)

    def call(self, helper: int) -> None:
        """Calls one of the kernel's functions: arguments R1 to R5, answer R0."""
        self._line(_CALL, 0, 0, 0, helper)

    def jump(self, label: str) -> None:
        """Goes on there."""
        self._jump(_JUMP, label, 0, 0, 0)

    def jump_if(self, condition: str, one: int, value: int, label: str) -> None:
        """Goes on there if the lower 32 bits of ``one`` compare so."""
        self._jump(_JUMP32 | _CONDITIONS[condition], label, one, 0, value)

    def jump_if_by(self, condition: str, one: int, other: int, label: str) -> None:
        """The same with all 64 bits of another register."""
        self._jump(_JUMP | _BY_REGISTER | _CONDITIONS[condition], label, one, other, 0)

    def label(self, name: str) -> None:
        """Jumps to this name go on with the next instruction."""
        self._labels[name] = len(self._lines)

    def exit(self, answer: int) -> None:
        """Ends the program with this answer."""
        self.alu("mov", R0, answer)
        self._line(_EXIT, 0, 0, 0, 0)

    def assembled(self) -> bytes:
        """The instructions."""
        distance = {
            at: self._labels[name] - at - 1 for at, name in self._jumps
        }  # counted from the instruction behind the jump
        return b"".join(
            _INSTRUCTION.pack(
                code, source << 4 | target, distance.get(at, offset), _signed(immediate)
            )
            for at, (code, target, source, offset, immediate) in enumerate(self._lines)
        )

    def _line(self, code: int, target: int, source: int, offset: int, immediate: int) -> None:
        self._lines.append((code, target, source, offset, immediate))

    def _jump(self, code: int, label: str, target: int, source: int, immediate: int) -> None:
        self._jumps.append((len(self._lines), label))
        self._line(code, target, source, 0, immediate)


def tag_of(instructions: bytes) -> bytes:
    """What the kernel calls a program: SHA-1 over it without the number of its map."""
    return hashlib.sha1(instructions, usedforsecurity=False).digest()[:8]


def _signed(value: int) -> int:
    """The same 32 bits as a signed number."""
    return value - 2**32 if value >= 2**31 else value
