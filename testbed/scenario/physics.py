"""Contradictions within a scenario that its key-by-key checks cannot see."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.contract.agent import Shape
from testbed.contract.breakpoint import STEP_NS
from testbed.errors import UnitError
from testbed.scenario.document import KeyPath
from testbed.scenario.file import ScenarioFile
from testbed.scenario.metricnames import needs_serving
from testbed.scenario.poolcheck import pool_faults
from testbed.scenario.profiles import ModelFacts
from testbed.scenario.service import SlaChoice
from testbed.scenario.servingcheck import serving_faults
from testbed.scenario.workload import FixedTokens, UniformTokens


def faults_of(
    file: ScenarioFile, shape: Shape | None, model: ModelFacts | None
) -> Iterator[tuple[KeyPath, str]]:
    """Each contradiction as (key, reason). ``shape`` or ``model`` is None if unknown."""
    yield from _window(file)
    yield from _breakpoints(file)
    yield from pool_faults(file.pool)
    yield from file.guard.faults()
    yield from _tcp(file)
    yield from _blocks(file)
    yield from _bounds(file)
    yield from _service(file)
    if file.serving is not None:
        yield from serving_faults(file.serving)
        if file.workload.offered_load is not None:
            yield (
                ("workload", "offered_load"),
                "does nothing with a serving plane, where what MD lacks decides what is sent; "
                "change links.wan.rate or workload.arrivals instead",
            )
    if model is not None:
        yield from _model(file, model)
        yield from _stop(file, model)
    if shape is not None and model is not None:
        yield from _substance(shape, model)


def _stop(file: ScenarioFile, model: ModelFacts) -> Iterator[tuple[KeyPath, str]]:
    stop = file.model.stop
    if not stop:
        return
    if file.serving is None:
        yield ("model", "stop"), "needs a serving plane; without one answers have their full length"
    if stop == "eos":
        if not model.eos:
            yield ("model", "stop"), f"{file.model.name} knows no end of its own; name token ids"
    elif unknown := [token for token in stop if token >= model.vocabulary]:
        yield (
            ("model", "stop"),
            f"{file.model.name} has tokens 0 to {model.vocabulary - 1}, not {unknown[0]}",
        )


def _window(file: ScenarioFile) -> Iterator[tuple[KeyPath, str]]:
    if file.window.measure.ns == 0:
        yield ("window", "measure"), "must be longer than 0 ns"
    if file.window.drain.ns == 0:
        yield ("window", "drain"), "must be longer than 0 ns: the last request needs time to end"


def _breakpoints(file: ScenarioFile) -> Iterator[tuple[KeyPath, str]]:
    last_ns = sum(one.ns for one in (file.window.warm_up, file.window.measure, file.window.drain))
    for number, at in enumerate(file.breakpoints):
        if at.ns == 0 or at.ns % STEP_NS:
            yield (
                ("breakpoints", number),
                "must be a multiple of 100 ms above 0: a run can stand still where its links are "
                "sampled, and nowhere else without a trace",
            )
        elif at.ns >= last_ns:
            yield (
                ("breakpoints", number),
                f"the run ends {last_ns / 1e9:g} s after the barrier at the latest",
            )
    if list(file.breakpoints) != sorted(set(file.breakpoints), key=lambda one: one.ns):
        yield ("breakpoints",), "must rise from one to the next"


def _tcp(file: ScenarioFile) -> Iterator[tuple[KeyPath, str]]:
    tcp = file.tcp
    for key, size in (("send_buffer", tcp.send_buffer), ("receive_buffer", tcp.receive_buffer)):
        if not 4096 <= size.bytes < 2**31:
            yield ("tcp", key), "must be 4 KiB to less than 2 GiB"
    if not 0 < tcp.low_water.bytes <= tcp.receive_buffer.bytes // 2:
        yield (
            ("tcp", "low_water"),
            "must be above 0 and at most half of receive_buffer, or the receiver might never wake",
        )


def _blocks(file: ScenarioFile) -> Iterator[tuple[KeyPath, str]]:
    block, ratio = file.shape.block.count, file.shape.ratio
    if block == 0 or block % ratio:
        yield (
            ("shape", "block"),
            f"block / ratio = {block} / {ratio} is not a whole number of real tokens, at least 1; "
            f"use a multiple of {ratio}",
        )
        return
    length = file.workload.input
    bounds = {
        FixedTokens: ("tokens",),
        UniformTokens: ("low", "high"),
    }.get(type(length), ("high",))
    longest = file.workload.longest_input
    if isinstance(length, FixedTokens) and (longest == 0 or longest % block):
        yield (
            ("workload", "input", bounds[0]),
            f"{longest} tokens are not a whole number of blocks of {block} tokens, at least 1",
        )
    elif longest < block:
        yield ("workload", "input", bounds[-1]), f"is below one block of {block} tokens"
    if file.workload.longest_output == 0:
        yield ("workload", "output"), "must be at least 1 token"


def _bounds(file: ScenarioFile) -> Iterator[tuple[KeyPath, str]]:
    for metric, bound in file.expect.metrics.items():
        try:
            bound.value(metric)
        except UnitError as fault:
            yield ("expect", "metrics", metric), f"{fault.subject} {fault.cause}; {fault.remedy}"
        if file.serving is None and needs_serving(metric):
            yield (
                ("expect", "metrics", metric),
                "only a serving plane has this metric; add serving, or bound another",
            )


def _service(file: ScenarioFile) -> Iterator[tuple[KeyPath, str]]:
    for key, duration in (("ttft_p90", file.sla.ttft_p90), ("tpot_p90", file.sla.tpot_p90)):
        if duration.ns == 0:
            yield ("sla", key), "must be longer than 0 ns"
    if file.serving is None:
        asked = {"sla": file.sla != SlaChoice(), "prices": file.prices is not None}
        for name in (name for name, given in asked.items() if given):
            yield (name,), "only a serving plane has a service; add serving, or leave it out"
    if file.prices is not None:
        yield from file.prices.unknown_nodes()
    elif "bcr" in file.expect.metrics:
        yield ("expect", "metrics", "bcr"), "needs a price table; add prices, or bound another"


def _model(file: ScenarioFile, model: ModelFacts) -> Iterator[tuple[KeyPath, str]]:
    real = -(-file.workload.longest_input // file.shape.ratio) + file.workload.longest_output
    if real > model.context:
        yield (
            ("workload", "input"),
            f"needs up to {real} real tokens (input / ratio + output); {file.model.name} holds "
            f"{model.context}; raise shape.ratio or shorten input or output",
        )


def _substance(shape: Shape, model: ModelFacts) -> Iterator[tuple[KeyPath, str]]:
    real = shape.block_tokens // shape.ratio * model.kv_per_real_token.value.bytes
    emulated = shape.block_tokens * shape.bytes_per_token
    if real > emulated:
        yield (
            ("shape", "ratio"),
            f"the real KV of a block is {real} bytes, but its emulated shape only {emulated}: the "
            "substance does not fit; raise ratio or take a larger KV profile",
        )
