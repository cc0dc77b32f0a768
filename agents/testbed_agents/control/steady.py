"""Keeps the processor's own counter out of the virtual timeline.

libzmq reads the time stamp counter, which no guest kernel virtualises, to decide when
to look at its clock and its command queue again. How fast the host is would then decide
how often a clock is read (256 ns of virtual time each) and when a message is seen.
libzmq has a path for machines without such a counter: it is taken where the counter
reads 0. So the instruction is replaced in this process's memory by one that yields 0,
once, before anything is forked. Nothing on disk changes.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import dataclass

from testbed.errors import AgentError

_COUNTER = bytes.fromhex("0f31 48c1e220 89c0")  # rdtsc; shl $32,%rdx; mov %eax,%eax
_ZERO = bytes.fromhex("31c0 31d2 0f1f4000")  # xor %eax,%eax; xor %edx,%edx; nopl 0(%rax)
_READ, _WRITE, _EXECUTE = mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Code:
    """Where a library's instructions lie in this process."""

    begin: int
    size: int


def code_of(library: str) -> Code:
    """The executable mapping of the loaded library whose file name holds ``library``.

    Raises:
        AgentError: no such library is loaded.
    """
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            words = line.split(maxsplit=5)
            if len(words) == 6 and "x" in words[1] and library in os.path.basename(words[5]):
                begin, end = (int(part, 16) for part in words[0].split("-"))
                return Code(begin, end - begin)
    raise AgentError("steady a library", library, "it is not loaded")


def sites(code: bytes) -> tuple[int, ...]:
    """Offsets at which the counter is read in the known way."""
    found: list[int] = []
    at = code.find(_COUNTER)
    while at >= 0:
        found.append(at)
        at = code.find(_COUNTER, at + 1)
    return tuple(found)


def steady_libzmq() -> int:
    """Makes every read of the counter in libzmq yield 0; returns how many there were.

    Raises:
        AgentError: libzmq is not loaded, reads the counter in an unknown way, or its
            memory cannot be changed.
    """
    code = code_of("libzmq")
    found = sites(ctypes.string_at(code.begin, code.size))
    if not found:
        raise AgentError(
            "steady libzmq", "rdtsc", "this build reads the counter in an unknown way",
            "install the pinned pyzmq (make setup)",
        )  # fmt: skip
    _protect(code, _READ | _WRITE)
    for at in found:
        ctypes.memmove(code.begin + at, _ZERO, len(_ZERO))
    _protect(code, _READ | _EXECUTE)
    return len(found)


def _protect(code: Code, mode: int) -> None:
    if _LIBC.mprotect(ctypes.c_void_p(code.begin), ctypes.c_size_t(code.size), mode) != 0:
        number = ctypes.get_errno()
        raise AgentError("steady libzmq", "mprotect", os.strerror(number))
