"""Baselines, PrfaaS, many sites and other workloads: each runs, and differs as it should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.conftest import Command, Done

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("staging")]

WHOLE = 16 * 4096 * 5031
"""Bytes of all prompts of pdd-hello and what extends it."""
PRFAAS = "serving.pipeline={kind: prfaas, schedule: {threshold: 2048 tokens, lowest: 512 tokens}}"


def figure(done: Done, *path: str) -> float:
    value: object = done.metrics
    for name in path:
        assert isinstance(value, dict)
        value = value[name]
    assert isinstance(value, int | float)
    return value


def names(done: Done, *path: str) -> dict[str, object]:
    value: object = done.metrics
    for name in path:
        assert isinstance(value, dict)
        value = value[name]
    assert isinstance(value, dict)
    return value


def passed(done: Done) -> Done:
    assert done.status == 0, done.out[-3000:] + done.err[-3000:]
    return done


def routes(run: Path) -> list[dict[str, str]]:
    lines = (run / "events" / "rt1.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [row for row in rows if row["kind"] == "request.routed"]


def sites(run: Path) -> dict[str, str]:
    plan = json.loads((run / "plan.json").read_text())
    return {node["name"]: node["site"] for node in plan["network"]["nodes"]}


def test_without_relay_only_what_the_decode_side_lacks_crosses(testbed: Command) -> None:
    done = passed(testbed("run", "cdc-pd", "--json"))
    sent = figure(done, "transfer", "bytes")
    assert sent == pytest.approx((1 - figure(done, "cache", "md_hit")) * WHOLE, rel=0.01)
    assert sent < 0.9 * WHOLE
    assert names(done, "serving", "pipelines") == {"P-MD": 16}


def test_without_a_decode_cache_every_prompt_crosses_whole(testbed: Command) -> None:
    done = passed(testbed("run", "no-drc", "--json"))
    assert figure(done, "transfer", "bytes") == pytest.approx(WHOLE, rel=0.01)
    assert figure(done, "cache", "md_hit") == 0
    assert figure(done, "cache", "p_hit") > 0.3


@pytest.mark.parametrize("name", ["idc-pd", "single-dc"])
def test_within_one_datacenter_nothing_crosses(testbed: Command, name: str) -> None:
    done = passed(testbed("run", name, "--json"))
    assert figure(done, "requests", "completed") == 16
    assert figure(done, "offered_load") == 0
    assert not [link for link in names(done, "link") if link.startswith("wan")]


@pytest.mark.parametrize("settings", [(), ("--set", PRFAAS)], ids=["prfaas-pdd", "prfaas"])
def test_long_prompts_are_prefilled_far_away(
    testbed: Command, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    run = tmp_path / "run"
    done = passed(testbed("run", "prfaas-pdd", "--out", str(run), "--json", *settings))
    at = sites(run)
    far = [one for one in routes(run) if at[one["prefill"]] == "b"]
    near = [one for one in routes(run) if at[one["prefill"]] == "a"]
    assert far
    assert near
    assert {one["reason"] for one in near} == {"prefilled-near"}
    pipelines = {one["pipeline"] for one in far}
    assert ("P-RLD-MD" in pipelines) is not bool(settings)
    assert figure(done, "transfer", "bytes") > 0


FIXED = "threshold: 512 tokens, lowest: 512 tokens, highest: 512 tokens"
LED = (
    "threshold: 512 tokens, lowest: 512 tokens, low: 1 %, high: 2 %, gain: 100 %, interval: 250 ms"
)


def test_a_busy_line_sends_fewer_away(testbed: Command, tmp_path: Path) -> None:
    far: dict[str, int] = {}
    for schedule in (FIXED, LED):
        rule = f"serving.pipeline={{kind: prfaas, schedule: {{{schedule}}}}}"
        run = tmp_path / str(len(far))
        passed(testbed("run", "prfaas-pdd", "--out", str(run), "--set", rule))
        far[schedule] = sum(sites(run)[one["prefill"]] == "b" for one in routes(run))
    assert 0 < far[LED] < far[FIXED]


@pytest.mark.parametrize(("name", "pairs"), [("pdd-many-to-one", 2), ("pdd-mesh", 4)])
def test_many_sites_share_the_work_and_relay_stays_with_prefill(
    testbed: Command, tmp_path: Path, name: str, pairs: int
) -> None:
    run = tmp_path / "run"
    passed(testbed("run", name, "--out", str(run)))
    at = sites(run)
    taken = routes(run)
    assert len({(at[one["prefill"]], at[one["decode"]]) for one in taken}) == pairs
    relayed = [one for one in taken if one["relay"]]
    assert relayed
    assert all(at[one["relay"]] == at[one["prefill"]] for one in relayed)
    clients = [(run / "events" / f"c{n}.jsonl").read_text() for n in (1, 2)]
    assert [text.count('"kind":"request.sent"') for text in clients] == [8, 8]


def test_sessions_stay_where_their_prefix_is(testbed: Command) -> None:
    done = passed(testbed("run", "pdd-sessions", "--json"))
    assert figure(done, "cache", "md_hit") > 0.5
    random = testbed(
        "run", "pdd-sessions", "--json", "--set", "expect={}", "--set",
        "serving.instances={prefill: random, decode: random}",
    )  # fmt: skip
    assert figure(passed(random), "cache", "md_hit") < figure(done, "cache", "md_hit")


def test_a_trace_brings_its_own_prefixes(testbed: Command) -> None:
    done = passed(testbed("run", "pdd-trace", "--json"))
    assert figure(done, "requests", "completed") == 16
    assert figure(done, "cache", "md_hit") > 0.3
