"""One flat file per model: header, tensors, tokenizer; read in order into one buffer.

::

    magic 8 │ header length 8 │ header JSON … pad to 64 │ tensors, each padded to 64 │ tokenizer

Under a User-Mode Linux guest each page of a process is one mapping of the host
process, merged only where neighbours are touched in order; a loader that scatters 134,000
pages dies at the usual ``vm.max_map_count`` of 65,530. So: one buffer, front to back.
"""

from __future__ import annotations

import errno
import io
import math
import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Final

import torch
import xxhash
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from testbed.contract.record import Record
from testbed.errors import AgentError
from testbed_agents.model.kv import tensor_bytes
from testbed_agents.model.weights import DTYPES, LlamaShape, Weights, assemble, tensor_shapes

FLAT_NAMES: Final = MappingProxyType({"smollm2-135m": "smollm2-135m.flat"})
MAGIC: Final = b"TBFLAT1\n"
_LENGTH: Final = struct.Struct("<Q")
_ALIGN: Final = 64
_HEADER_MAX: Final = 1 << 20
_PIECE: Final = 1 << 22
_MADV_POPULATE_WRITE: Final = 23  # linux/mman.h; Python's mmap has no name for it
REMEDY: Final = "convert the weights again: python -m testbed_agents.model.convert --force"


class Source(Record):
    """Where the weights come from."""

    package: str
    version: str
    file: str
    sha256: str


class Header(Record):
    """What a flat file says about itself."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=False)

    name: str
    shape: LlamaShape
    offsets: dict[str, int]
    """Byte offset of each tensor behind the header."""
    weights_bytes: int = Field(gt=0)
    weights_xxh3: str
    tokenizer_bytes: int = Field(gt=0)
    tokenizer_xxh3: str
    source: Source


_HEADERS: Final = TypeAdapter(Header)


def cache_folder() -> Path:
    """As ``testbed.host.cache``: ``$XDG_CACHE_HOME/pdd-testbed``, by default in ``~/.cache``."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "pdd-testbed"


def flat_path(name: str) -> Path:
    """Where the cache keeps a model's flat file, whether or not it exists yet."""
    return cache_folder() / "models" / FLAT_NAMES[name]


def write_flat(
    stream: BinaryIO,
    name: str,
    shape: LlamaShape,
    tensors: Mapping[str, torch.Tensor],
    tokenizer: bytes,
    source: Source,
) -> Header:
    """Write the file in one pass; two passes over the tensors, none held twice.

    Raises:
        AgentError: a tensor is missing or has the wrong shape or type.
    """
    dtype = DTYPES[shape.item_bytes]
    offsets: dict[str, int] = {}
    digest = xxhash.xxh3_128()
    end = 0
    for key, size in tensor_shapes(shape).items():
        tensor = tensors.get(key)
        if tensor is None or tuple(tensor.shape) != size or tensor.dtype != dtype:
            raise AgentError("write flat weights", key, f"expected {size} of {dtype}")
        offsets[key] = end
        for piece in _padded(tensor):
            digest.update(piece)
            end += len(piece)
    header = Header(
        name=name,
        shape=shape,
        offsets=offsets,
        weights_bytes=end,
        weights_xxh3=digest.hexdigest(),
        tokenizer_bytes=len(tokenizer),
        tokenizer_xxh3=xxhash.xxh3_128_hexdigest(tokenizer),
        source=source,
    )
    text = header.model_dump_json().encode()
    text += b" " * (-(len(MAGIC) + _LENGTH.size + len(text)) % _ALIGN)
    stream.write(MAGIC + _LENGTH.pack(len(text)) + text)
    for key in offsets:
        for piece in _padded(tensors[key]):
            stream.write(piece)
    stream.write(tokenizer)
    return header


def read_header(path: Path) -> Header:
    """The header alone.

    Raises:
        AgentError: the file is missing or is not a flat weights file.
    """
    with _open(path) as stream:
        return _read_header(stream, path)


def read_weights(path: Path) -> Weights:
    """All tensors, as views into one buffer.

    Raises:
        AgentError: the file is missing, truncated or damaged.
    """
    with _open(path) as stream:
        header = _read_header(stream, path)
        buffer = _buffer(header.weights_bytes)
        digest = xxhash.xxh3_128()
        with memoryview(buffer) as view:
            for begin in range(0, len(buffer), _PIECE):
                piece = view[begin : begin + _PIECE]
                if stream.readinto(piece) != len(piece):
                    raise AgentError("read weights", str(path), "the file is truncated", REMEDY)
                digest.update(piece)
    if digest.hexdigest() != header.weights_xxh3:
        raise AgentError("read weights", str(path), "the digest does not match", REMEDY)
    everything = torch.frombuffer(buffer, dtype=DTYPES[header.shape.item_bytes])
    tensors: dict[str, torch.Tensor] = {}
    for key, size in tensor_shapes(header.shape).items():
        begin = header.offsets[key] // header.shape.item_bytes
        tensors[key] = everything[begin : begin + math.prod(size)].view(size)
    return assemble(header.shape, tensors)


def read_tokenizer(path: Path) -> bytes:
    """The tokenizer's JSON.

    Raises:
        AgentError: the file is missing, truncated or damaged.
    """
    with _open(path) as stream:
        header = _read_header(stream, path)
        stream.seek(header.weights_bytes, 1)
        text = stream.read(header.tokenizer_bytes)
    if xxhash.xxh3_128_hexdigest(text) != header.tokenizer_xxh3:
        raise AgentError("read tokenizer", str(path), "the digest does not match", REMEDY)
    return text


def _buffer(size: int) -> mmap.mmap:
    """Zeroed private memory whose pages the kernel has laid down in one go, in order.

    Left to page faults while the file is read, its pages alternate with those of the
    page cache, and one host mapping covers only some 15 of them.
    """
    buffer = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        buffer.madvise(_MADV_POPULATE_WRITE)
    except OSError as error:
        if error.errno != errno.EINVAL:  # kernels before 5.14 do not know the advice
            raise
    return buffer


def _open(path: Path) -> io.FileIO:
    try:
        return io.FileIO(path)
    except OSError as error:
        raise AgentError("read weights", str(path), error.strerror or str(error), REMEDY) from error


def _read_header(stream: io.FileIO, path: Path) -> Header:
    start = stream.read(len(MAGIC) + _LENGTH.size)
    if len(start) < len(MAGIC) + _LENGTH.size or not start.startswith(MAGIC):
        raise AgentError("read weights", str(path), "not a flat weights file", REMEDY)
    (length,) = _LENGTH.unpack(start[len(MAGIC) :])
    if length > _HEADER_MAX:
        raise AgentError("read weights", str(path), f"header of {length} bytes", REMEDY)
    try:
        header = _HEADERS.validate_json(stream.read(length))
    except ValidationError as error:
        raise AgentError("read weights", str(path), f"bad header: {error}", REMEDY) from error
    expected = set(tensor_shapes(header.shape))
    if set(header.offsets) != expected:
        raise AgentError("read weights", str(path), "the header names other tensors", REMEDY)
    return header


def _padded(tensor: torch.Tensor) -> tuple[memoryview, bytes]:
    """A tensor's bytes, and what fills them up to the next alignment."""
    data = tensor_bytes(tensor)
    return data, bytes(-len(data) % _ALIGN)
