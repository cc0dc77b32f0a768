"""How many bytes the serving plane may send: what is due, its frames, and nothing else."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from testbed.checks import Status
from testbed.checks.bytes_conserved import BytesConserved
from tests.fakes.plane_change import look, put
from tests.fakes.plane_run import BLOCK_BYTES, Event, plane_case, plane_events, plane_plan, transfer

FIXED_BYTES = 4_560_000


def sized(events: list[Event], req: int | None = None, times: int = 1) -> list[Event]:
    """With the fixed bytes of the plan's shape in every transfer (of ``req``), ``times`` over."""
    for one in events:
        if str(one["kind"]).startswith(("transfer.", "kv.")):
            many = times if req in (None, one["req"]) else 1
            one["size"] = (int(str(one["size"])) + FIXED_BYTES) * many
    return events


def test_bytes_due_to_md_depend_on_its_cache(tmp_path: Path) -> None:
    events = sized(plane_events())
    assert look(plane_case(tmp_path, events), BytesConserved()).status is Status.PASS
    put("cache.matched", 0, "md1", blocks=5)(events)
    assert look(plane_case(tmp_path, events), BytesConserved()).status is Status.FAIL


@pytest.mark.parametrize("times", [2, 10])
def test_a_transfer_of_more_than_what_is_due_is_noticed(tmp_path: Path, times: int) -> None:
    events = sized(plane_events(), 0, times)
    finding = look(plane_case(tmp_path, events), BytesConserved())
    size = 2 * BLOCK_BYTES + FIXED_BYTES
    assert finding.violations == (f"request 0 offered {times * size} of {size} bytes",)


def test_a_transfer_may_be_raised_to_its_frames_and_real_content(tmp_path: Path) -> None:
    plan = plane_plan()
    shape = plan.agents[0].shape.model_copy(update={"bytes_per_token": 8, "fixed_bytes": 0})
    agents = tuple(agent.model_copy(update={"shape": shape}) for agent in plan.agents)
    small = plan.model_copy(update={"agents": agents})
    for size, status in ((2 * 1024, "pass"), (2 * 1024 + 248, "pass"), (2 * 1024 + 249, "fail")):
        case = plane_case(tmp_path, plane_events()[:1] + transfer(5, 0, "md1", 2, 9))
        for step in case.history.steps:
            object.__setattr__(step, "size", size)
        case.history.matched["md1", 0] = (6, 8)
        finding = look(dataclasses.replace(case, plan=small), BytesConserved())
        assert finding.status.value == status


@pytest.mark.parametrize(("rows", "status"), [(2, Status.PASS), (3, Status.FAIL)])
def test_rld_sends_the_rows_of_the_tokens_that_it_emitted(
    tmp_path: Path, rows: int, status: Status
) -> None:
    sent = transfer(153, 1, "md1", 0, 154, sender="r1")
    for one in sent:
        one["size"] = rows * 5031 + FIXED_BYTES
    events = sized(plane_events()) + sent
    assert look(plane_case(tmp_path, events), BytesConserved()).status is status
