"""The bytes between substance and stamp: production size without production data.

Where only the substance is verified, padding comes from a sparse in-memory file by
``sendfile`` and is dropped by the receiver in the kernel: no program copies it, and
the file occupies no memory. Where every byte is verified it is a pseudo-random
stream that depends on the request and the position.
"""

from __future__ import annotations

import hashlib
import os

PIECE = 1024 * 1024
"""Bytes generated and digested at a time where every byte is verified."""
FILE_BYTES = 64 * 1024 * 1024
_PERIOD = 65_521  # prime, so that no power-of-two shift repeats it
_TABLE = hashlib.shake_256(b"kv padding").digest(_PERIOD)
_STREAM = _TABLE * (2 + PIECE // _PERIOD)


class PaddingFile:
    """A sparse file of ``FILE_BYTES`` zeros to send from."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("kv-padding", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, FILE_BYTES)

    def close(self) -> None:
        """Give the descriptor back; a second call does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def stream(request: int, offset: int, count: int) -> memoryview:
    """``count`` <= PIECE bytes of the padding at ``offset`` of a transfer."""
    if not 0 <= count <= PIECE:
        raise ValueError(f"at most {PIECE} bytes at a time: {count}")
    start = (request * 7_919 + offset) % _PERIOD
    return memoryview(_STREAM)[start : start + count]
