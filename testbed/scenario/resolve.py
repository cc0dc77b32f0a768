"""Every name in a scenario is looked up, and every contradiction found."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from testbed.contract.agent import Hardware
from testbed.contract.link import LinkSpec
from testbed.contract.role import Role
from testbed.errors import ScenarioError
from testbed.scenario.data import DataKind, find, folder, names
from testbed.scenario.defects import misplaced
from testbed.scenario.document import Document, KeyPath
from testbed.scenario.faults import in_order
from testbed.scenario.file import ScenarioFile
from testbed.scenario.hardware_file import (
    hardware_files,
    is_file_name,
    read_hardware_file,
    with_absolute_files,
)
from testbed.scenario.linkspec import compose
from testbed.scenario.named import load_profile, load_topology
from testbed.scenario.nearest import brief, listing, unknown_key
from testbed.scenario.physics import faults_of
from testbed.scenario.profile import LinkChoice
from testbed.scenario.profiles import (
    KvPrecision,
    ModelFacts,
    hardware_profiles,
    kv_profiles,
    model_facts,
)
from testbed.scenario.topology import Topology
from testbed.scenario.value import InputFile, Scenario
from testbed.scenario.workload import TraceArrivals


@dataclass(slots=True)
class Resolver:
    """Looks up what a scenario names, collecting faults instead of stopping at one."""

    document: Document
    path: Path
    recorded: bool = False
    """It is that of a run folder, which may have what only the field library may write."""
    faults: list[str] = field(default_factory=list)
    sources: list[tuple[str, str]] = field(default_factory=list)

    def resolve(self, file: ScenarioFile) -> Scenario:
        topology = self._topology(file)
        links: tuple[tuple[str, LinkSpec], ...] = ()
        parameters: dict[str, int] = {}
        profiles: tuple[str, ...] = ()
        if topology is not None:
            parameters = self._parameters(file, topology)
            links, profiles = self._links(file, topology)
        precision = self._kv(file)
        file = with_absolute_files(file, self.path.parent)
        hardware = self._hardware(file.shape.hardware, ("shape", "hardware"))
        by_role, near = self._by_role(file), self._near(file)
        file = self._trace(file)
        model = self._model(file)
        shape = file.shape.resolve(
            precision.bytes_per_token.value.bytes if precision else 1,
            precision.fixed.value.bytes if precision and precision.fixed else 0,
        )
        if file.defects and not self.recorded:
            against = misplaced(self.document, self.path)
            if against is not None:
                self._fault(("defects",), against)
        for key, reason in faults_of(file, shape if precision else None, model):
            self._fault(key, reason)
        if self.faults or topology is None or hardware is None or model is None:
            raise ScenarioError(self.document.name, in_order(self.faults))
        return Scenario(
            file=file,
            topology=topology,
            parameters=tuple(parameters.items()),
            links=links,
            shape=shape,
            hardware=hardware,
            by_role=by_role,
            near_prefill=near,
            model=model,
            sources=tuple(self.sources),
            inputs=self._inputs(file, profiles),
            fault_places=tuple(
                self.document.place(("faults", index)) for index in range(len(file.faults))
            ),
        )

    def _fault(self, key: KeyPath, reason: str) -> None:
        self.faults.append(self.document.fault(key, reason))

    def _topology(self, file: ScenarioFile) -> Topology | None:
        name = file.topology.name
        if name not in names(DataKind.TOPOLOGIES, self.path.parent):
            self._fault(
                ("topology", "name"), listing(name, names(DataKind.TOPOLOGIES, self.path.parent))
            )
            return None
        try:
            return load_topology(name, self.path.parent)
        except ScenarioError as error:
            self.faults.extend(error.faults)
            return None

    def _parameters(self, file: ScenarioFile, topology: Topology) -> dict[str, int]:
        values = {name: known.default for name, known in topology.parameters.items()}
        for name, value in file.topology.parameters.items():
            key = ("topology", "parameters", name)
            known = topology.parameters.get(name)
            if known is None:
                self._fault(key, unknown_key(name, topology.parameters))
            elif not known.minimum <= value <= known.maximum:
                self._fault(key, f"{value} is outside {known.minimum} to {known.maximum}")
            else:
                values[name] = value
        return values

    def _links(
        self, file: ScenarioFile, topology: Topology
    ) -> tuple[tuple[tuple[str, LinkSpec], ...], tuple[str, ...]]:
        built: list[tuple[str, LinkSpec]] = []
        profiles: list[str] = []
        for link_class in file.links:
            if link_class not in topology.links:
                self._fault(("links", link_class), unknown_key(link_class, topology.links))
        for link_class, known in topology.links.items():
            choice = file.links.get(link_class, LinkChoice())
            name = choice.profile or known.profile
            if name not in names(DataKind.TC_PROFILES, self.path.parent):
                reason = listing(name, names(DataKind.TC_PROFILES, self.path.parent))
                self._fault(("links", link_class, "profile"), reason)
                continue
            try:
                profile = load_profile(name, self.path.parent)
            except ScenarioError as error:
                self.faults.extend(error.faults)
                continue
            profiles.append(name)
            spec = compose(profile, choice)
            if isinstance(spec, LinkSpec):
                built.append((link_class, spec))
                self.sources.append((f"link {link_class}", f"tc profile {name}"))
                continue
            for against in spec:
                where = ("links", link_class, against.key)
                self._fault(where, f"(profile {name}) {against.text}")
        return tuple(built), tuple(profiles)

    def _kv(self, file: ScenarioFile) -> KvPrecision | None:
        profiles = kv_profiles().profiles
        profile = profiles.get(file.shape.kv)
        if profile is None:
            self._fault(("shape", "kv"), listing(file.shape.kv, profiles))
            return None
        precision = profile.precisions.get(file.shape.precision)
        if precision is None:
            reason = listing(file.shape.precision, profile.precisions)
            self._fault(("shape", "precision"), reason)
            return None
        self.sources.append(("KV bytes per token", precision.bytes_per_token.source))
        if precision.fixed is not None:
            self.sources.append(("KV fixed bytes", precision.fixed.source))
        return precision

    def _hardware(self, name: str, key: KeyPath) -> Hardware | None:
        if is_file_name(name):
            try:
                found = read_hardware_file(Path(name))
            except ScenarioError as error:
                self.faults.extend(error.faults)
                return None
            self.sources.append(("hardware", found.source))
            return found
        profiles = hardware_profiles().profiles
        profile = profiles.get(name)
        if profile is None:
            self._fault(key, listing(name, profiles))
            return None
        self.sources.append(("hardware", profile.source))
        return profile.resolve(name)

    def _by_role(self, file: ScenarioFile) -> tuple[tuple[Role, Hardware], ...]:
        """Hardware of the roles that have one of their own."""
        if file.serving is None:
            return ()
        chosen = file.serving.hardware
        found: list[tuple[Role, Hardware]] = []
        for role, name in (
            (Role.PREFILL, chosen.prefill), (Role.RELAY, chosen.relay), (Role.DECODE, chosen.decode)
        ):  # fmt: skip
            if name is not None:
                key = ("serving", "hardware", role.value)
                hardware = self._hardware(name, key)
                if hardware is not None:
                    found.append((role, hardware))
        return tuple(found)

    def _near(self, file: ScenarioFile) -> Hardware | None:
        """Hardware of P beside an MD, where it differs."""
        name = None if file.serving is None else file.serving.hardware.near_prefill
        if name is None:
            return None
        return self._hardware(name, ("serving", "hardware", "near_prefill"))

    def _model(self, file: ScenarioFile) -> ModelFacts | None:
        models = model_facts().models
        if file.model.name not in models:
            self._fault(("model", "name"), listing(file.model.name, models))
            return None
        return models[file.model.name]

    def _trace(self, file: ScenarioFile) -> ScenarioFile:
        """Make a trace's path absolute, so that the resolved file loads anywhere."""
        arrivals = file.workload.arrivals
        if not isinstance(arrivals, TraceArrivals):
            return file
        trace = self.path.parent / arrivals.file
        try:
            trace = trace.resolve()
            found_it = trace.is_file()
        except (OSError, ValueError):  # a name that no file can have
            found_it = False
        if not found_it:
            self._fault(
                ("workload", "arrivals", "file"),
                f"{brief(arrivals.file)!r}, read from {self.path.parent.absolute()}, "
                "does not exist or is no regular file",
            )
        found = arrivals.model_copy(update={"file": str(trace)})
        return file.model_copy(
            update={"workload": file.workload.model_copy(update={"arrivals": found})}
        )

    def _inputs(self, file: ScenarioFile, profiles: tuple[str, ...]) -> tuple[InputFile, ...]:
        paths = [
            self.path,
            *self.document.sources,
            find(DataKind.TOPOLOGIES, file.topology.name, self.path.parent),
            *(find(DataKind.TC_PROFILES, name, self.path.parent) for name in sorted(set(profiles))),
            *(folder(DataKind.PROFILES) / f"{name}.yaml" for name in names(DataKind.PROFILES)),
        ]
        paths += hardware_files(file)
        if isinstance(file.workload.arrivals, TraceArrivals):
            paths.append(Path(file.workload.arrivals.file))
        return tuple(
            InputFile(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths
        )
