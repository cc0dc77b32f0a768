"""Doctor's judgement is a pure function of what was found."""

from __future__ import annotations

import io
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
from rich.console import Console

from testbed.host import debian
from testbed.host.doctor import findings_table, modes_table, report_json
from testbed.host.finding import Fact, Finding, Level, judge
from testbed.host.machine import Machine, read_machine
from testbed.host.support import State, default_works, support
from testbed.lab.guest.kernel.probe import BootResult

GIB = 1024**3

GOOD = Machine(
    architecture="x86_64",
    python=(3, 11),
    root=False,
    cores=2,
    memory_free=8 * GIB,
    disk_free=50 * GIB,
    shm_free=4 * GIB,
    max_map_count=65_530,
    missing_packages=(),
    kernel=Path("/cache/linux"),
    boot=BootResult(True, "boots and powers off"),
    host_netem=False,
    container_engine=None,
    missing_container_programs=("dockerd", "docker-compose"),
    torch_cuda=None,
    torch_installed=True,
    gpu=False,
)


def finding(machine: Machine, fact: Fact) -> Finding:
    return next(f for f in judge(machine) if f.fact is fact)


def test_an_ordinary_user_without_netem_can_run_the_default_lab() -> None:
    rows = support(judge(GOOD))
    assert (rows[0].mode.lab, rows[0].mode.clock) == ("mininet", "virtual")
    assert default_works(rows)


@pytest.mark.parametrize(
    ("broken", "fact"),
    [
        (replace(GOOD, architecture="aarch64"), Fact.ARCHITECTURE),
        (replace(GOOD, python=(3, 12)), Fact.PYTHON),
        (replace(GOOD, memory_free=1 * GIB), Fact.MEMORY),
        (replace(GOOD, disk_free=GIB // 2), Fact.DISK),
        (replace(GOOD, max_map_count=8192), Fact.MAPPINGS),
        (replace(GOOD, kernel=None, boot=None), Fact.KERNEL),
        (replace(GOOD, boot=BootResult(False, "ptrace: Operation not permitted")), Fact.BOOT),
        (replace(GOOD, torch_installed=False), Fact.TORCH),
    ],
)
def test_what_the_guest_needs_is_named_with_a_remedy(broken: Machine, fact: Fact) -> None:
    row = support(judge(broken))[0]
    assert row.state is State.MISSING
    assert row.missing[0] is fact
    assert row.remedy


def test_a_missing_lab_package_gives_the_exact_line_to_run() -> None:
    mininet = next(p for p in debian.PACKAGES if p.name == "mininet")
    found = finding(replace(GOOD, missing_packages=(mininet,)), Fact.PACKAGES)
    assert found.level is Level.MISSING
    assert found.remedy.startswith("sudo ")
    assert "apt-get install -y --no-install-recommends mininet" in found.remedy


def test_build_tools_no_longer_matter_once_the_kernel_is_built() -> None:
    flex = next(p for p in debian.PACKAGES if p.name == "flex")
    with_kernel = replace(GOOD, missing_packages=(flex,))
    assert finding(with_kernel, Fact.PACKAGES).level is Level.WARN
    without = replace(with_kernel, kernel=None, boot=None)
    assert finding(without, Fact.PACKAGES).level is Level.MISSING


def test_a_cuda_build_without_a_gpu_is_a_warning_and_with_one_is_fine() -> None:
    cuda = replace(GOOD, torch_cuda="13.0")
    assert finding(cuda, Fact.TORCH).level is Level.WARN
    assert "TORCH_INDEX" in finding(cuda, Fact.TORCH).remedy
    assert finding(replace(cuda, gpu=True), Fact.TORCH).level is Level.OK
    assert default_works(support(judge(cuda)))


def test_modes_of_later_versions_are_never_reported_as_working() -> None:
    everything = replace(
        GOOD, root=True, host_netem=True, container_engine="28.0", missing_container_programs=()
    )
    states = {(r.mode.lab, r.mode.clock, r.mode.on): r.state for r in support(judge(everything))}
    assert states.pop(("mininet", "virtual", "guest")) is State.WORKS
    assert states.pop(("compose", "virtual", "guest")) is State.WORKS
    assert states.pop(("mininet", "real", "guest")) is State.WORKS
    assert states.pop(("mininet", "real", "host")) is State.WORKS
    assert set(states.values()) == {State.PLANNED}


@pytest.mark.parametrize(
    ("changes", "state", "remedy"),
    [
        ({}, State.MISSING, "requirements-containers.lock"),
        ({"missing_container_programs": ("runc",)}, State.MISSING, "docker.io"),
        ({"missing_container_programs": ()}, State.MISSING, "run as root"),
        ({"missing_container_programs": (), "root": True}, State.WORKS, ""),
        ({"missing_container_programs": (), "container_engine": "28.0"}, State.WORKS, ""),
    ],
)
def test_containers_in_the_guest_need_an_engine_and_compose(
    changes: dict[str, object], state: State, remedy: str
) -> None:
    machine = Machine(**{**{f.name: getattr(GOOD, f.name) for f in fields(GOOD)}, **changes})
    (row,) = [
        r for r in support(judge(machine)) if (r.mode.lab, r.mode.clock) == ("compose", "virtual")
    ]
    assert row.state is state
    assert remedy in row.remedy


def test_every_fact_is_judged_once_and_every_fault_has_a_remedy() -> None:
    nothing = Machine(
        architecture="riscv64", python=(3, 9), root=False, cores=1, memory_free=0, disk_free=0,
        shm_free=0, max_map_count=0, missing_packages=debian.PACKAGES, kernel=None, boot=None,
        host_netem=False, container_engine=None, missing_container_programs=("runc",),
        torch_cuda=None, torch_installed=False, gpu=False,
    )  # fmt: skip
    findings = judge(nothing)
    assert sorted(f.fact for f in findings) == sorted(Fact)
    assert all(f.remedy for f in findings if f.level in (Level.MISSING, Level.ABSENT))


def test_json_says_the_same_as_the_tables() -> None:
    findings = judge(replace(GOOD, kernel=None, boot=None))
    rows = support(findings)
    said = json.loads(report_json(findings, rows))
    assert said["modes"][0]["missing"] == ["lab kernel", "lab kernel boots"]
    assert {f["fact"] for f in said["findings"]} == {fact.value for fact in Fact}
    screen = Console(file=io.StringIO(), width=200)
    screen.print(modes_table(rows))
    screen.print(findings_table(findings))
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "testbed kernel build" in text
    assert all(fact.value in text for fact in Fact)


def test_this_machine_can_be_read_without_a_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none" / "yet"))
    machine = read_machine()
    assert machine.kernel is None
    assert machine.boot is None
    assert machine.cores >= 1
    assert machine.memory_free > 0
    assert not (tmp_path / "none").exists()
