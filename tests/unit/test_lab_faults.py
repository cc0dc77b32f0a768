"""Faults of a run: refused where they mean nothing, written down, undone in reverse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.event import Kind
from testbed.contract.link import LinkSpec
from testbed.contract.network import Link
from testbed.errors import LabError
from testbed.lab.faults import Faults
from testbed.lab.ledger import Ledger
from tests.fakes.guarded_lab import AGENT, NETWORK, ROUTER, WIRE

pytestmark = pytest.mark.unit
LINK = NETWORK.links[0]
FAR = LINK.forward.model_copy(update={"delay_ns": 9_000_000})


OPEN: list[Ledger] = []
"""Ledgers of the test that is running."""


@pytest.fixture(autouse=True)
def _ledgers_are_closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


class Stage:
    """Lab, node faults, wires, agents and sampler in one: tells what was called."""

    network = NETWORK

    def __init__(self, in_place: bool = True, broken: str = "") -> None:
        self.calls: list[tuple[str, str]] = []
        self.notes: list[tuple[Kind, str, str]] = []
        self.excused: list[str] = []
        self.anew: list[str] = []
        self.now = LINK
        self._in_place = in_place
        self._broken = broken

    def faults(self, folder: Path) -> Faults:
        """The faults of a run with this lab; its ledger is ``folder/ledger.jsonl``."""
        self.ledger = Ledger(folder / "ledger.jsonl")
        OPEN.append(self.ledger)
        return Faults(self, self, self, self, self.ledger)  # type: ignore[arg-type]

    def node_faults(self) -> Stage:
        return self

    def link(self, name: str) -> Link:
        if name != LINK.name:
            raise LabError("find a link", name, "there is none")
        return self.now

    def reshape(self, name: str, forward: LinkSpec, backward: LinkSpec) -> bool:
        self.calls.append(("reshape", name))
        self.now = self.now.model_copy(update={"forward": forward, "backward": backward})
        return self._in_place

    def excuse(self, node: str) -> None:
        self.excused.append(node)

    def renew(self, links: tuple[str, ...]) -> None:
        self.anew.extend(links)

    def sample_now(self) -> None:
        self.calls.append(("sample", ""))

    def note(self, kind: Kind, fault: str, subject: str) -> int:
        self.notes.append((kind, fault, subject))
        return 0

    def __getattr__(self, name: str) -> object:
        if name not in {
            "pause", "resume", "kill", "revive", "restart", "disconnect", "connect", "cut", "mend",
        }:  # fmt: skip
            raise AttributeError(name)

        def call(subject: str) -> None:
            self.calls.append((name, subject))
            if name == self._broken:
                raise LabError(name, subject, "the Engine says so, but it is not so")

        return call


PAIRS = (
    ("pause", "resume", AGENT), ("disconnect", "connect", AGENT), ("cut", "mend", "wan1"),
    ("kill", "revive", WIRE),
)  # fmt: skip


@pytest.mark.parametrize(("fault", "undo", "subject"), PAIRS)
def test_a_fault_is_in_force_until_it_is_undone(
    tmp_path: Path, fault: str, undo: str, subject: str
) -> None:
    stage = Stage()
    faults = stage.faults(tmp_path)
    with pytest.raises(LabError, match="not in force"):
        getattr(faults, undo)(subject)
    getattr(faults, fault)(subject)
    with pytest.raises(LabError, match="in force already"):
        getattr(faults, fault)(subject)
    getattr(faults, undo)(subject)
    assert stage.calls == [(fault, subject), (undo, subject)]
    assert stage.notes == [
        (Kind.FAULT_BEGAN, fault, subject), (Kind.FAULT_ENDED, fault, subject),
    ]  # fmt: skip
    assert stage.ledger.undo_all() == ()
    assert len(stage.calls) == 2, "undone once"
    written = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert [(one["action"], one["name"]) for one in written] == [
        ("acquire", f"{fault} {subject}"), ("undo", f"{fault} {subject}"),
    ]  # fmt: skip


@given(chosen=st.lists(st.sampled_from(PAIRS), unique=True))
def test_leaving_undoes_what_is_in_force_in_reverse(
    tmp_path_factory: pytest.TempPathFactory, chosen: list[tuple[str, str, str]]
) -> None:
    stage = Stage()
    with stage.faults(tmp_path_factory.mktemp("run")) as faults:
        for fault, _, subject in chosen:
            getattr(faults, fault)(subject)
    done = [(undo, subject) for _, undo, subject in reversed(chosen)]
    assert stage.calls[len(chosen) :] == done


def test_what_cannot_be_undone_while_an_error_is_on_its_way_stays_in_the_ledger(
    tmp_path: Path,
) -> None:
    stage = Stage(broken="resume")

    def go_wrong() -> None:
        with stage.faults(tmp_path) as faults:
            faults.pause(AGENT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go_wrong()
    assert [fault.subject for fault in stage.ledger.undo_all()] == [f"pause {AGENT}"]


def test_a_fault_that_does_not_take_hold_is_undone_with_the_lab(tmp_path: Path) -> None:
    stage = Stage(broken="pause")
    faults = stage.faults(tmp_path)
    with pytest.raises(LabError, match="not so"):
        faults.pause(AGENT)
    assert stage.notes == []
    assert stage.ledger.undo_all() == ()
    assert stage.calls[-1] == ("resume", AGENT)


@pytest.mark.parametrize("fault", ["pause", "kill", "restart", "disconnect", "cut"])
def test_whom_the_network_does_not_have_is_refused(tmp_path: Path, fault: str) -> None:
    stage = Stage()
    with pytest.raises(LabError, match="nobody"):
        getattr(stage.faults(tmp_path), fault)("nobody")
    assert stage.calls == []
    assert stage.excused == []


def test_a_killed_agent_is_excused_for_good_and_a_killed_wire_until_it_is_back(
    tmp_path: Path,
) -> None:
    stage = Stage()
    faults = stage.faults(tmp_path)
    faults.kill(AGENT)
    faults.kill(WIRE)
    assert stage.excused == [AGENT]
    assert faults.wants_end_of(WIRE)
    assert not faults.wants_back(WIRE)
    faults.revive(WIRE)
    assert faults.wants_back(WIRE)
    faults.is_back(WIRE)
    assert not faults.wants_end_of(WIRE)
    with pytest.raises(LabError, match="not in force"):
        faults.revive(AGENT)


def test_who_is_restarted_is_to_come_back(tmp_path: Path) -> None:
    faults = Stage().faults(tmp_path)
    assert not faults.wants_end_of(ROUTER)
    faults.restart(ROUTER)
    assert faults.wants_end_of(ROUTER)
    assert faults.wants_back(ROUTER)


@pytest.mark.parametrize("in_place", [True, False])
def test_a_reshaped_link_is_restored_and_counted_anew_where_its_queues_went(
    tmp_path: Path, in_place: bool
) -> None:
    stage = Stage(in_place)
    faults = stage.faults(tmp_path)
    faults.reshape("wan1", FAR, LINK.backward)
    assert (stage.now.forward, stage.now.backward) == (FAR, LINK.backward)
    faults.restore("wan1")
    assert stage.now == LINK
    assert stage.anew == ([] if in_place else ["wan1", "wan1"])


def test_only_a_disconnected_node_may_stand_otherwise(tmp_path: Path) -> None:
    faults = Stage().faults(tmp_path)
    assert not faults.wants_changed(AGENT)
    faults.disconnect(AGENT)
    assert faults.wants_changed(AGENT)
    faults.connect(AGENT)
    assert not faults.wants_changed(AGENT)
