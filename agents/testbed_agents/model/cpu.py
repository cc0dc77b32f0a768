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
from types import MappingProxyType
from typing import Final

PINNED: Final = MappingProxyType(
    {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "AUTO",
        "MKL_DYNAMIC": "FALSE",
        "MKL_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
)
"""Environment of every process that computes tokens. ``default`` is the baseline
kernel set: the same on every x86-64 machine, and never an illegal instruction."""


def pin() -> None:
    """Set every variable of ``PINNED`` that the caller has not set himself."""
    for name, value in PINNED.items():
        os.environ.setdefault(name, value)
