"""Loads programs and reads loaded ones back, through bpf(2).

Only the four calls needed, on plain buffers (struct layouts: include/uapi/linux/bpf.h).
Needs root in the namespace's owner and CONFIG_BPF_SYSCALL; no BTF, no compiler, no JIT.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from enum import IntEnum

from testbed.errors import LabError
from testbed.shaping.netlink_bpf import LoadedProgram
from testbed.shaping.pacer_program import map_value, program
from testbed.shaping.qdisc import Pacer

SYS_BPF = 321
"""x86-64."""
MAP_TYPE_ARRAY, PROG_TYPE_SCHED_CLS = 2, 3
ATTR_BYTES = 128
INFO_BYTES = 256
LOG_BYTES = 65_536
INSTRUCTION_BYTES = 8
_NR_MAPS_AT, _MAP_IDS_AT = 52, 56
"""Offsets of nr_map_ids and map_ids in struct bpf_prog_info."""
_libc = ctypes.CDLL(None, use_errno=True)


class _Call(IntEnum):
    """Commands of bpf(2)."""

    MAP_CREATE = 0
    MAP_LOOKUP = 1
    MAP_UPDATE = 2
    PROG_LOAD = 5
    PROG_BY_ID = 13
    MAP_BY_ID = 14
    INFO_BY_FD = 15


@contextlib.contextmanager
def loaded(pacer: Pacer) -> Iterator[int]:
    """A descriptor of the loaded program; a filter that took it keeps it alive afterwards."""
    map_fd = make_map(map_value(pacer))
    try:
        with loaded_program(program(pacer, map_fd)) as descriptor:
            yield descriptor
    finally:
        os.close(map_fd)


def make_map(value: bytes) -> int:
    """Descriptor of an array of one entry with this content; a program that uses it keeps it."""
    map_fd = _call(_Call.MAP_CREATE, struct.pack("=4I", MAP_TYPE_ARRAY, 4, len(value), 1))
    write_map(map_fd, value)
    return map_fd


def write_map(map_fd: int, value: bytes) -> None:
    """Replaces the content."""
    key, content = ctypes.create_string_buffer(4), ctypes.create_string_buffer(value)
    _call(
        _Call.MAP_UPDATE,
        struct.pack("=IIQQQ", map_fd, 0, ctypes.addressof(key), ctypes.addressof(content), 0),
    )


def read_map(map_fd: int, size: int) -> bytes:
    """The content, as many bytes as it was made with."""
    key, content = ctypes.create_string_buffer(4), ctypes.create_string_buffer(size)
    _call(
        _Call.MAP_LOOKUP,
        struct.pack("=IIQQQ", map_fd, 0, ctypes.addressof(key), ctypes.addressof(content), 0),
    )
    return content.raw


def delays_of(found: LoadedProgram) -> tuple[int, ...]:
    """The delays that a loaded program uses, read back from its map (without the repeat)."""
    with (
        _descriptor(_Call.PROG_BY_ID, struct.pack("=I", found.number)) as descriptor,
        _descriptor(_Call.MAP_BY_ID, struct.pack("=I", _map_id(descriptor))) as map_fd,
    ):
        size = struct.unpack_from("=I", _info(map_fd), 12)[0]
        return struct.unpack(f"={size // 4}I", read_map(map_fd, size))[:-1]


def _map_id(program_fd: int) -> int:
    numbers = (ctypes.c_uint32 * 1)()
    info = ctypes.create_string_buffer(INFO_BYTES)
    struct.pack_into("=I", info, _NR_MAPS_AT, 1)
    struct.pack_into("=Q", info, _MAP_IDS_AT, ctypes.addressof(numbers))
    _fill(program_fd, info)
    return int(numbers[0])


def _info(descriptor: int) -> bytes:
    info = ctypes.create_string_buffer(INFO_BYTES)
    _fill(descriptor, info)
    return info.raw


def _fill(descriptor: int, info: ctypes.Array[ctypes.c_char]) -> None:
    _call(_Call.INFO_BY_FD, struct.pack("=IIQ", descriptor, INFO_BYTES, ctypes.addressof(info)))


@contextlib.contextmanager
def loaded_program(instructions: bytes) -> Iterator[int]:
    """A descriptor of a classifier; LabError with the verifier's words where it is refused."""
    code = ctypes.create_string_buffer(instructions)
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    log = ctypes.create_string_buffer(LOG_BYTES)
    attr = struct.pack(
        "=IIQQIIQ",
        PROG_TYPE_SCHED_CLS,
        len(instructions) // INSTRUCTION_BYTES,
        ctypes.addressof(code),
        ctypes.addressof(licence),
        1,
        LOG_BYTES,
        ctypes.addressof(log),
    )
    try:
        number = _call(_Call.PROG_LOAD, attr)
    except LabError as error:
        said = log.value.decode("ascii", "replace").strip()
        raise LabError(error.attempt, error.subject, f"{error.cause}: {said}") from error
    try:
        yield number
    finally:
        os.close(number)


@contextlib.contextmanager
def _descriptor(call: _Call, attr: bytes) -> Iterator[int]:
    number = _call(call, attr)
    try:
        yield number
    finally:
        os.close(number)


def _call(call: _Call, attr: bytes) -> int:
    buffer = ctypes.create_string_buffer(attr, ATTR_BYTES)
    result: int = _libc.syscall(SYS_BPF, int(call), buffer, ATTR_BYTES)
    if result < 0:
        raise LabError("call bpf", call.name, os.strerror(ctypes.get_errno()))
    return result
