"""Measures how long a real model takes on this machine, for a hardware profile.

``python -m testbed_agents.model.measure MODEL [--device cpu|cuda] [--runs N] [--tokens N]``
prints one JSON object: facts of device and software, and for each point of work the
seconds of every run. Fitting a profile to them is ``testbed.hardware.measured``'s part.

What is timed is ``Engine.prefill``, ``decode`` and ``extend`` as agents call them, and
copies of KV between host and device. Rows that a pass looks back at are random numbers:
no time depends on them. Each point is run once before it is timed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch

from testbed.contract.agent import ModelConfig
from testbed.errors import AgentError, HostError, TestbedError
from testbed_agents.model.engine import Engine
from testbed_agents.model.kv import Kv
from testbed_agents.model.load import load_model
from testbed_agents.model.protocol import Step
from testbed_agents.model.weights import DTYPES, LayerWeights, Weights

Device = Literal["cpu", "cuda"]
Point = dict[str, int | list[float]]

_BATCHES = (1, 2, 4, 8, 16)
_EXTENDED = (1, 9, 33, 100)
_COPIES_MIB = (1, 4, 16, 64)


@dataclass(frozen=True, slots=True)
class Bench:
    """One model on one device."""

    model: Engine
    device: torch.device
    runs: int
    most: int
    """Largest number of tokens of a pass, and of context behind one."""

    def timed(self, prepare: Callable[[], Callable[[], object]]) -> list[float]:
        """Seconds of each run; what ``prepare`` does for a run is not part of it."""
        taken: list[float] = []
        for _ in range(self.runs + 1):
            work = prepare()
            self._wait()
            began = time.perf_counter()
            work()
            self._wait()
            taken.append(time.perf_counter() - began)
        return taken[1:]

    def rows(self, tokens: int) -> Kv:
        """Random KV of ``tokens`` tokens on the device."""
        layout = self.model.layout
        numbers = torch.randn((tokens, *layout.row_shape), dtype=DTYPES[layout.item_bytes])
        return Kv(layout, (numbers,))

    def _wait(self) -> None:
        """A GPU computes behind the caller's back until it is waited for."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def measure(name: str, device: Device, runs: int, most: int) -> dict[str, object]:
    """All points of one model on one device.

    Raises:
        HostError: there is no such device.
        AgentError: no such model, or its weights are missing.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise HostError(
            "calibrate the model", "cuda", "torch sees no CUDA device here",
            "take --device cpu, or a machine with a GPU and a CUDA build of torch",
        )  # fmt: skip
    place = torch.device(device)
    model = load_model(ModelConfig(name=_known(name), sampling="greedy"))
    torch.set_default_device(place)  # before an engine makes its tables
    try:
        if device == "cuda":
            model = Engine(moved(model.weights, place), 0, "greedy")
        bench = Bench(model, place, runs, most)
        return {
            "model": name,
            "device": device,
            "device_name": device_name(place),
            "torch": torch.__version__,
            "dtype": str(DTYPES[model.layout.item_bytes]).removeprefix("torch."),
            "threads": torch.get_num_threads(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "runs": runs,
            "kv_token_bytes": model.layout.row_bytes,
            "free_bytes": _free_bytes(place),
            "prefill": _prefill(bench),
            "decode": [*_decode(bench), *_extend(bench)],
            "copy": _copies(bench),
        }
    finally:
        torch.set_default_device("cpu")


def moved(weights: Weights, place: torch.device) -> Weights:
    """A copy of all tensors on a device."""
    layers = tuple(
        LayerWeights(
            input_norm=layer.input_norm.to(place), qkv=layer.qkv.to(place),
            out=layer.out.to(place), mlp_norm=layer.mlp_norm.to(place),
            gate_up=layer.gate_up.to(place), down=layer.down.to(place),
        )
        for layer in weights.layers
    )  # fmt: skip
    embedding = weights.embedding.to(place)
    return replace(
        weights, embedding=embedding, layers=layers, norm=weights.norm.to(place),
        head=embedding if weights.shape.tied else weights.head.to(place),
    )  # fmt: skip


def device_name(place: torch.device) -> str:
    """What the device calls itself."""
    if place.type == "cuda":
        return torch.cuda.get_device_name(place)
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as stream:
        names = [line.split(":", 1)[1] for line in stream if line.startswith("model name")]
    return names[0].strip() if names else platform.machine()


def _prefill(bench: Bench) -> list[Point]:
    points: list[Point] = []
    for tokens in _lengths(bench.most):
        for context in (0, bench.most // 4, bench.most):
            past = bench.rows(context)
            fed = tuple([1 + index % 256 for index in range(tokens)])

            def ready(past: Kv = past, fed: tuple[int, ...] = fed) -> Callable[[], object]:
                whole = past.prefix(past.length)
                return lambda: bench.model.prefill(fed, whole)

            points.append({"tokens": tokens, "context": context, "seconds": bench.timed(ready)})
    return points


def _decode(bench: Bench) -> list[Point]:
    points: list[Point] = []
    for batch in _BATCHES:
        for context in (bench.most // 8, bench.most // 2, bench.most):
            sequences = [bench.rows(context) for _ in range(batch)]
            bench.model.decode([Step(kv, (1,), i) for i, kv in enumerate(sequences)])

            def ready(sequences: list[Kv] = sequences) -> Callable[[], object]:
                steps = [Step(kv, (1,), i) for i, kv in enumerate(sequences)]
                return lambda: bench.model.decode(steps)

            points.append(
                {"batch": batch, "context": batch * context, "extra": 0,
                 "seconds": bench.timed(ready)}
            )  # fmt: skip
    return points


def _extend(bench: Bench) -> list[Point]:
    points: list[Point] = []
    for width in _EXTENDED:
        kv = bench.rows(bench.most // 2)
        bench.model.decode([Step(kv, (1,), 0)])
        fed = (1,) * width

        def ready(kv: Kv = kv, fed: tuple[int, ...] = fed) -> Callable[[], object]:
            return lambda: bench.model.decode([Step(kv, fed, 0)])

        points.append(
            {"batch": 1, "context": bench.most // 2, "extra": width - 1,
             "seconds": bench.timed(ready)}
        )  # fmt: skip
    return points


def _copies(bench: Bench) -> list[Point]:
    """One way each: into the device, and back. On a CPU both ends are its memory."""
    points: list[Point] = []
    for mib in _COPIES_MIB:
        size = mib * 2**20
        host = torch.empty(size, dtype=torch.uint8, device="cpu")
        if bench.device.type == "cuda":
            host = host.pin_memory()
        there = torch.empty(size, dtype=torch.uint8)
        ways = ((there, host), (host, there))
        for to, source in ways:

            def ready(to: torch.Tensor = to, source: torch.Tensor = source) -> Callable[[], object]:
                return lambda: to.copy_(source)

            points.append({"bytes": size, "seconds": bench.timed(ready)})
    return points


def _lengths(most: int) -> tuple[int, ...]:
    """Tokens of a pass: one, then doubling up to ``most``."""
    lengths = [most]
    while lengths[-1] // 2 >= max(8, most // 16):
        lengths.append(lengths[-1] // 2)
    return (1, *reversed(lengths))


def _free_bytes(place: torch.device) -> int:
    """Device memory that is free beside the weights; 0 where nothing bounds it but the host."""
    return torch.cuda.mem_get_info(place)[0] if place.type == "cuda" else 0


def _known(name: str) -> Literal["nano", "smollm2-135m"]:
    match name:
        case "nano" | "smollm2-135m":
            return name
        case _:
            raise AgentError("calibrate the model", name, "there is no such model")


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m testbed_agents.model.measure")
    parser.add_argument("model")
    parser.add_argument("--device", choices=get_args(Device), default="cpu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=512)
    options = parser.parse_args(arguments)
    try:
        print(json.dumps(measure(options.model, options.device, options.runs, options.tokens)))
    except TestbedError as error:
        print(error, file=sys.stderr)
        return int(error.exit_status)
    return 0


if __name__ == "__main__":
    sys.exit(main())
