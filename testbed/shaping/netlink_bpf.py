"""TCA_OPTIONS of a ``bpf`` filter in direct-action mode (include/uapi/linux/pkt_cls.h)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from testbed.errors import FidelityError
from testbed.shaping.attribute import table, text, u32

A_FD, A_NAME, A_FLAGS, A_TAG, A_ID = 6, 7, 8, 10, 11
DIRECT_ACTION = 1
NAME = "fifo-jitter"


@dataclass(frozen=True, slots=True)
class LoadedProgram:
    """A program as the kernel names it: hash of its instructions, and its id."""

    tag: bytes
    number: int


def encode_bpf(program_fd: int, name: str = NAME) -> bytes:
    """The payload of TCA_OPTIONS; the descriptor must be open in the sending process."""
    return u32(A_FD, program_fd) + text(A_NAME, name) + u32(A_FLAGS, DIRECT_ACTION)


def decode_bpf(options: bytes) -> LoadedProgram:
    """Which program a filter runs."""
    found = table(options)
    if A_TAG not in found or A_ID not in found:
        raise FidelityError("decode bpf filter", "TCA_BPF_TAG", "missing")
    return LoadedProgram(found[A_TAG], struct.unpack("=I", found[A_ID])[0])
