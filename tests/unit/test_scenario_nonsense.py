"""Whatever value a key is given, the answer is a plan or a reason, and never a crash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from testbed.errors import TestbedError
from testbed.run.prepare import prepare
from testbed.scenario import load_scenario
from testbed.scenario.data import DataKind, folder

_TRIED = ("0", "99999999999999999999", "zz", "[]")


def leaves(tree: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Keys that hold a plain value, with it."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, (*path, str(key)))
    elif not isinstance(tree, list):
        yield path, tree


def settings(scenario: str) -> Iterator[str]:
    """Every key of the resolved file with plain nonsense, and with 0 and much of its unit."""
    tree = YAML(typ="safe").load(load_scenario(scenario).resolved_yaml())
    for path, value in leaves(tree):
        unit = str(value).partition(" ")[2] if isinstance(value, str) else ""
        own = (f"0 {unit}", f"99999999999999999999 {unit}") if unit else _TRIED
        yield from (f"{'.'.join(path)}={one}" for one in own)


def test_nonsense_is_planned_or_refused() -> None:
    refused: list[tuple[str, TestbedError]] = []
    for setting in settings("pdd-hello"):
        try:
            prepare("pdd-hello", (setting,))
        except TestbedError as error:
            refused.append((setting, error))
    assert len(refused) > 50
    assert [one for one, error in refused if error.exit_status != 2 or not error.remedy] == []


@pytest.mark.parametrize(
    ("scenario", "setting", "words"),
    [
        ("pdd-hello", "shape.block=0 tokens", "shape.block: must be above 0"),
        ("hello", "sla.ttft_p90=5 s", "only a serving plane has a service"),
        (
            "hello",
            "prices={unit: x, nodes: {h: 1.0}, instances: {prefill: {node: h, count: 1}}}",
            "only a serving plane has a service",
        ),
        (
            "pdd-hello",
            "prices={unit: x, nodes: {h: 1.0}, instances: {prefill: {node: h, count: 1}}}",
            "prices.instances.relay: is missing",
        ),
        (
            "pdd-hello",
            "prices={unit: x, nodes: {h: 1.0}, instances: {}}",
            "prices.instances.prefill: is missing",
        ),
        ("pdd-hello", "serving.memory.decode=0 B", "leave it out to take the hardware profile's"),
        ("pdd-hello", "serving.hardware.near_prefill=h100-p", "no P shares its site with an MD"),
    ],
)
def test_what_would_do_nothing_is_refused(scenario: str, setting: str, words: str) -> None:
    with pytest.raises(TestbedError, match=words):
        prepare(scenario, (setting,))


def test_a_hardware_file_without_memory_says_so_by_leaving_it_out(tmp_path: Path) -> None:
    kept = YAML(typ="safe").load((folder(DataKind.PROFILES) / "hardware.yaml").read_text())
    profile = {**kept["profiles"]["h100-d"], "kv_memory": "0 B"}
    path = tmp_path / "own.yaml"
    with path.open("w") as stream:
        YAML().dump({"profiles": {"own": profile}}, stream)
    with pytest.raises(TestbedError, match=r"kv_memory: must be above 0"):
        prepare("pdd-hello", (f"shape.hardware={path}",))
