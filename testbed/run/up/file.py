"""The Compose files at the top of the project, as text: what ``testbed compose`` prints."""

from __future__ import annotations

from testbed.compose.anchors import with_anchors
from testbed.compose.document import ComposeFile, plain, yaml_of
from testbed.compose.settle import settled_network
from testbed.compose.standalone import Standalone, blocks, render_gpu, render_standalone
from testbed.contract.network import Network
from testbed.contract.scale import Scale, paced
from testbed.errors import PlanError
from testbed.plan import roster
from testbed.plan.network import build_network
from testbed.plan.scale import scaled
from testbed.run.up.plan import layout_digest
from testbed.scenario import load_scenario
from testbed.scenario.data import DataKind, folder
from testbed.scenario.load import scenario_path

PROFILES = (("pdd", "pdd-hello"), ("cdc-pd", "cdc-pd"), ("idc-pd", "idc-pd"), ("pool", "hello"))
"""Profiles of compose.yaml and their scenarios; ``.env`` chooses the first one."""
FILE, GPU_FILE = "compose.yaml", "compose.gpu.yaml"
_HEADING = """\
Made by: testbed compose{words}. Change the scenario and make it anew.

    docker compose up --build --exit-code-from client

runs {what} on this host's clock, and leaves ./runs/SCENARIO/START-sSEED with report.html and
verdict.json. Exit status: 0 pass, 1 fail, 3 invalid. Then: docker compose down. Needs Docker Engine
20.10, Compose 2.20, and a kernel from 6.6 on with sch_netem.

{list}

Environment:
  TESTBED_USER=UID:GID   whom agents run as; ./runs must be writable for it (10001:10001)
  TESTBED_NET=N          first number of all addresses ({first}); another one where networks collide
  TESTBED_SEED=N         seed of the run (the scenario's)
  TESTBED_SLOW=N         slow motion (the scenario's); more where this host cannot carry it
  TESTBED_AGENT_IMAGE, TESTBED_ROUTER_IMAGE   images that are there already
  BASE, TORCH, TORCH_INDEX                    arguments of agents/Dockerfile"""
_GPU_HEADING = """\
Made by: testbed compose --gpu{words}. Reserves a GPU for every service that runs a model.

    docker compose -f compose.yaml -f compose.gpu.yaml up --build --exit-code-from client"""


def compose_text(scenario: str | None = None, first: int = 10) -> str:
    """The Compose file of one scenario, or the one with all profiles.

    Args:
        first: first number of all addresses where TESTBED_NET is not set.

    Raises:
        ScenarioError, PlanError: a scenario is wrong, or cannot be laid out in containers.
    """
    chosen = PROFILES if scenario is None else (("", scenario),)
    file, scales = _rendered(chosen, first)
    content = plain(file)
    listed = "\n".join(
        f"  {f'--profile {profile}: ' if profile else ''}{name} at {_words(scale)}"
        for (profile, name), scale in zip(chosen, scales, strict=True)
    )
    heading = _HEADING.format(
        words=f" {scenario}" if scenario else "", first=first, list=listed,
        what=f"the scenario {chosen[0][1]}",
    )  # fmt: skip
    return yaml_of(with_anchors(content, blocks(content)), heading)


def gpu_text(scenario: str | None = None) -> str:
    """What the second file adds to the first one.

    Raises:
        ScenarioError, PlanError: as ``compose_text``.
    """
    chosen = PROFILES if scenario is None else (("", scenario),)
    file, _ = _rendered(chosen, 10)
    return yaml_of(render_gpu(file), _GPU_HEADING.format(words=f" {scenario}" if scenario else ""))


def _rendered(
    chosen: tuple[tuple[str, str], ...], first: int
) -> tuple[ComposeFile, tuple[Scale, ...]]:
    found = [(profile, name, *_network(name)) for profile, name in chosen]
    parts = tuple(
        Standalone(profile, _planned(name), settled_network(network), layout_digest(network))
        for profile, name, network, _ in found
    )
    return render_standalone(parts, first), tuple(scale for *_, scale in found)


def _planned(name: str) -> str:
    """What the planner is told: a shipped scenario's name, or where the file lies."""
    path = scenario_path(name)
    shipped = path.resolve().parent == folder(DataKind.SCENARIOS).resolve()
    return path.stem if shipped else str(path.resolve())


def _network(name: str) -> tuple[Network, Scale]:
    """The network that the planner will plan, whatever the machine: no fact of it is asked."""
    written = load_scenario(name)
    if written.file.faults:
        raise PlanError(
            "render for docker compose", written.fault_places[0],
            "plain docker compose has nobody who could do what faults asks for",
            f"testbed run {name} --lab compose, or leave faults out",
        )  # fmt: skip
    if written.file.breakpoints:
        raise PlanError(
            "render for docker compose", name,
            "the clock of plain docker compose does not stand still at breakpoints",
            f"testbed run {name} --lab compose, or leave breakpoints out",
        )  # fmt: skip
    scenario, scale = scaled(written, written.file.real_time)
    network = build_network(scenario, roster(scenario), scenario.seed, "compose")
    return paced(network, scale.slow), scale


def _words(scale: Scale) -> str:
    if scale.full:
        return "full size and pace"
    return f"{scale.size:.2%} of its size, {scale.slow:g} times slower"
