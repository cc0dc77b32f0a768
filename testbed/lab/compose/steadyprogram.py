"""Copies of Go programs that do not read the processor's own counter.

No guest kernel virtualises the time stamp counter. Go's runtime seeds its choices with it:
which branch of a select goes first, in what order a map is walked. So how fast the host is
would decide in what order an Engine works and how often it reads the clock. In a copy the
instruction is replaced by one that yields 0; the program that is installed stays as it is.
With the copies, all that an Engine does, up to the lines of its log, repeats to the nanosecond.

A second change: programs that are told to run Go code on several threads at once run it on one.
The guest has one processor, and a thread that waits for another one by spinning, or by giving way
again and again, would stop the virtual clock.
"""

from __future__ import annotations

import re
from pathlib import Path

from testbed.errors import HostError

_READS = bytes.fromhex("7510 0f01f9 48c1e220 4801d0 4889442408 c3 0faef0 0faee8 0f31 ebe9")
"""runtime·cputicks (asm_amd64.s, Go 1.17 and later): jne 2f; rdtscp; 1: shl $32,%rdx;
add %rdx,%rax; mov %rax,8(%rsp); ret; 2: mfence; lfence; rdtsc; jmp 1b."""
_ZERO = bytes.fromhex("7510 eb0e90 48c1e220 4801d0 4889442408 c3 31c0 31d2 0f1f4000 ebe9")
"""The same, with: jmp 2f; nop … 2: xor %eax,%eax; xor %edx,%edx; nopl 0(%rax)."""


_SEVERAL = re.compile(rb"GOMAXPROCS=[2-9]")
"""What containerd and its shims give to the shims that they start."""


def steadied(code: bytes) -> bytes | None:
    """The program without the counter; None where it does not read it in the known way."""
    if _READS not in code:
        return None
    return _SEVERAL.sub(b"GOMAXPROCS=1", code.replace(_READS, _ZERO))


def copy_steady(source: Path, target: Path) -> None:
    """Writes such a copy, ready to be executed.

    Raises:
        HostError: the program does not read the counter in the known way.
        OSError: one of the files cannot be read or written.
    """
    code = steadied(source.read_bytes())
    if code is None:
        raise HostError(
            "keep the processor's counter out of", str(source),
            "it is no Go program, or its Go version reads the counter in an unknown way",
            "install the Engine of Debian 12: as root: apt-get install docker.io",
        )  # fmt: skip
    target.write_bytes(code)
    target.chmod(0o755)
