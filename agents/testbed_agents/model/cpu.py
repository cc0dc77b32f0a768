"""Pins the CPU-dependent code paths, so that one machine always computes one answer.

torch picks vector kernels by CPU, MKL by CPU, alignment and thread count. Each choice
rounds differently, and OpenMP's waiting threads spin without a system call, which
stops a virtual clock. The variables are read when torch is loaded: pin before that.

Sources: pytorch aten/src/ATen/native/DispatchStub.cpp (``ATEN_CPU_CAPABILITY``);
oneMKL developer guide, "Specifying Code Branches" (``MKL_CBWR``: ``AUTO`` makes results
independent of memory alignment, not of the CPU model).
"""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import Final


def _capability() -> str:
    """As in the guest (``testbed.lab.guest.boot``): avx2 where there is one, else the baseline."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return "default"
    return "avx2" if "avx2" in flags else "default"


PINNED: Final = MappingProxyType(
    {
        "ATEN_CPU_CAPABILITY": _capability(),
        "MKL_CBWR": "AUTO",
        "MKL_DYNAMIC": "FALSE",
        "MKL_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
)
"""Environment of every process that computes tokens; never an illegal instruction."""


def pin() -> None:
    """Set every variable of ``PINNED`` that the caller has not set himself."""
    for name, value in PINNED.items():
        os.environ.setdefault(name, value)
