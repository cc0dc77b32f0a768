"""Calibrates a real model on this machine: measures it, fits a profile, writes the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from testbed.errors import AgentError, ExitStatus, HostError, LabError, UsageError
from testbed.hardware.measured import Fit, Measured, Residual, fit
from testbed.hardware.render import yaml_lines
from testbed.hardware.shipped import Shipped
from testbed.lab.program import run_module
from testbed.scenario.hardware_file import read_hardware_file
from testbed.scenario.nearest import listing
from testbed.scenario.profiles import model_facts

_SCHEMA = "# yaml-language-server: $schema=../docs/schema/hardware.schema.json"
_ATTEMPT = "calibrate the model"
_MOST = {"cpu": 512, "cuda": 4096}
"""Tokens of the longest pass that is measured: a CPU takes seconds for it."""


@dataclass(frozen=True, slots=True)
class ModelCalibrated:
    """A profile that was written."""

    path: Path
    name: str
    residuals: tuple[Residual, ...]


def calibrate_model(model: str, device: str, out: Path, runs: int = 5) -> ModelCalibrated:
    """Measure, fit, write ``out``, and load it as a scenario would.

    Raises:
        UsageError: no such model or device, or the file exists.
        HostError, AgentError: no such device here, or the weights are missing.
        LabError: the measurement broke or its points do not determine a profile.
    """
    _check(model, device, out, runs)
    done = run_module(
        "testbed_agents.model.measure", model, "--device", device, "--runs", str(runs),
        "--tokens", str(_MOST[device]),
    )  # fmt: skip
    if done.status != 0:
        kind = HostError if done.status == ExitStatus.UNABLE else AgentError
        cause, remedy = _told(done.err)
        raise kind(_ATTEMPT, f"{model} on {device}", cause, remedy)
    name = f"{model}-{device}"
    try:
        measured = Measured.model_validate_json(done.out)
        found = fit(measured, name, "")
    except (ValidationError, ValueError) as error:
        raise LabError(
            _ATTEMPT, f"{model} on {device}", str(error),
            "the machine was too busy for stable times: run it again",
        ) from error  # fmt: skip
    text = "\n".join(_lines(measured, found, name)) + "\n"
    out.write_text(text, encoding="utf-8")
    read_hardware_file(out)
    return ModelCalibrated(out, name, found.residuals)


def _told(words: str) -> tuple[str, str]:
    """Cause and remedy from what the measurement said last; of a traceback its end."""
    text = words.strip()[-2000:]
    start = f"cannot {_ATTEMPT}: "
    if start not in text:
        return text or "it said nothing", "see above"
    cause, _, remedy = text[text.rindex(start) + len(start) :].partition("\n  remedy: ")
    return cause, remedy


def _check(model: str, device: str, out: Path, runs: int) -> None:
    models = model_facts().models
    if model not in models:
        raise UsageError(_ATTEMPT, model[:60], listing(model, models))
    if device not in _MOST:
        raise UsageError(_ATTEMPT, f"--device {device[:20]}", "cpu or cuda")
    if out.exists():
        raise UsageError(_ATTEMPT, str(out), "it exists", "name a new file")
    if out.suffix != ".yaml" or not out.parent.is_dir():
        raise UsageError(
            _ATTEMPT, str(out), "not a .yaml file in a folder that exists",
            "profiles are YAML files; name one",
        )  # fmt: skip
    if not 1 <= runs <= 1000:
        raise UsageError(_ATTEMPT, f"--runs {runs}", "1 to 1000 runs a point")


def _lines(measured: Measured, found: Fit, name: str) -> tuple[str, ...]:
    """The file: schema, provenance as YAML comments and in ``source``, the profile."""
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    where = f"{measured.device_name} ({measured.device})"
    source = (
        f"measured on {when} by testbed calibrate --model {measured.model} "
        f"--device {measured.device}: {where}, {measured.dtype}, torch {measured.torch}, "
        f"{measured.threads} CPU thread(s), {measured.capability} kernels; median of "
        f"n = {measured.runs} a point; fit by least squares of relative errors. "
        + "; ".join(str(residual) for residual in found.residuals)
    )
    hardware = found.hardware.model_copy(update={"source": source})
    shipped = Shipped(f"{measured.model} as this project runs it on {where}", hardware)
    points = [
        {"what": what, **point.model_dump(by_alias=True)}
        for what, group in (
            ("prefill", measured.prefill), ("decode", measured.decode), ("copy", measured.copy_)
        )
        for point in group
    ]  # fmt: skip
    return (
        _SCHEMA,
        "# Times of the real model, per real token. Measured points, in seconds:",
        *(f"# {json.dumps(point)}" for point in points),
        "profiles:",
        *yaml_lines(shipped),
    )
