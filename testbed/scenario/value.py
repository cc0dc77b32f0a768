"""A scenario as the rest of the testbed sees it: checked, resolved, frozen."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Literal

from ruamel.yaml import YAML

from testbed.contract.agent import Hardware, ModelConfig, Shape, Tcp, Window
from testbed.contract.guard import Guard
from testbed.contract.link import LinkSpec
from testbed.contract.pool import Pool
from testbed.contract.role import Role
from testbed.scenario.expect import Expect
from testbed.scenario.file import ScenarioFile
from testbed.scenario.layout import Layout
from testbed.scenario.profiles import ModelFacts
from testbed.scenario.topology import Topology
from testbed.scenario.workload import Workload


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that the scenario was made from, with its SHA-256 for provenance."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """One study with every name looked up.

    Attributes:
        file: what the author wrote, with overrides and defaults filled in.
        topology: the topology it names.
        parameters: value of each of the topology's parameters.
        links: the resolved link of each class that the topology uses (seed 0).
        shape: bytes and blocks per emulated token.
        hardware: times of prefill and decode.
        by_role: hardware of the roles that have their own.
        near_prefill: hardware of P that share their site with an MD, where it differs.
        model: facts of the real model.
        sources: where each resolved number comes from, as (what, source).
        inputs: files read, with digests.
        fault_places: where each of ``file.faults`` is written, ``file:line``.
    """

    file: ScenarioFile
    topology: Topology
    parameters: tuple[tuple[str, int], ...]
    links: tuple[tuple[str, LinkSpec], ...]
    shape: Shape
    hardware: Hardware
    by_role: tuple[tuple[Role, Hardware], ...]
    near_prefill: Hardware | None
    model: ModelFacts
    sources: tuple[tuple[str, str], ...]
    inputs: tuple[InputFile, ...]
    fault_places: tuple[str, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        """Name of the scenario, also of its folder of runs."""
        return self.file.name

    @property
    def seed(self) -> int:
        """Default seed; ``--seed`` goes before it."""
        return self.file.seed

    @property
    def workload(self) -> Workload:
        """What clients ask for."""
        return self.file.workload

    @property
    def expect(self) -> Expect:
        """What must come out for a run to pass."""
        return self.file.expect

    @property
    def lab(self) -> Literal["mininet", "compose"]:
        """Default lab; ``--lab`` goes before it."""
        return self.file.lab

    @property
    def clock(self) -> Literal["virtual", "real"]:
        """Default clock; ``--clock`` goes before it."""
        return self.file.clock

    @property
    def window(self) -> Window:
        """Phases after the barrier in nanoseconds."""
        window = self.file.window
        return Window(
            warm_up_ns=window.warm_up.ns, measure_ns=window.measure.ns, drain_ns=window.drain.ns
        )

    @property
    def pool(self) -> Pool:
        """The connection pool of each pair, in integers."""
        return self.file.pool.resolve()

    @property
    def guard(self) -> Guard:
        """How transfers are guarded, in integers."""
        return self.file.guard.resolve()

    @property
    def tcp(self) -> Tcp:
        """Socket options of data connections, in integers."""
        tcp = self.file.tcp
        return Tcp(
            congestion=tcp.congestion,
            send_buffer=tcp.send_buffer.bytes,
            receive_buffer=tcp.receive_buffer.bytes,
            receive_low_water=tcp.low_water.bytes,
            slow_start_after_idle=tcp.slow_start_after_idle,
        )

    def hardware_of(self, role: Role, site: str | None = None) -> Hardware:
        """The hardware of agents of one role, at one site where it matters."""
        beside = {place.site for place in self.layout.where(Role.DECODE)}
        if role is Role.PREFILL and self.near_prefill is not None and site in beside:
            return self.near_prefill
        return dict(self.by_role).get(role, self.hardware)

    def agent_model(self, weights: str | None) -> ModelConfig:
        """The model as agents load it; ``weights`` is the path they see."""
        choice = self.file.model
        return ModelConfig(
            name=choice.name,
            seed=choice.seed,
            weights=weights,
            sampling=choice.sampling or self.model.sampling,
            stop=self.model.eos if choice.stop == "eos" else choice.stop,
        )

    def link(self, link_class: str) -> LinkSpec:
        """The link of one class. Raises KeyError for a class the topology lacks."""
        return dict(self.links)[link_class]

    @property
    def layout(self) -> Layout:
        """The topology with its parameters filled in."""
        return self.topology.layout(dict(self.parameters))

    def count(self, role: Role) -> int:
        """Number of agents of one role."""
        return self.topology.count(role, dict(self.parameters))

    def resolved_yaml(self) -> str:
        """The scenario file with all defaults and overrides written out.

        It loads to an equal scenario; the run folder keeps it as ``scenario.yaml``.
        """
        stream = io.StringIO()
        yaml = YAML(typ="safe", pure=True)
        yaml.default_flow_style = False
        yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
        yaml.dump(self.file.model_dump(mode="json", exclude_none=True), stream)
        return stream.getvalue()
