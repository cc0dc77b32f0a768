"""``pool:``: which discipline, its parameters, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.contract.pool import Fifo, Lanes, Lifo, Order, PerTransfer
from testbed.errors import ScenarioError
from testbed.plan.summary import _pooled
from testbed.plan.sysctl import agent_sysctls
from testbed.scenario import load_scenario
from testbed.scenario.document import parse_document
from testbed.scenario.load import load_document

HELLO = Path(__file__).parents[2] / "scenarios" / "hello.yaml"
BUCKETS = "net.ipv4.tcp_max_tw_buckets"
WRITTEN = "pool: {size: 8}"


def written(tmp_path: Path, pool: str) -> Path:
    text = HELLO.read_text()
    assert WRITTEN in text
    path = tmp_path / "study.yaml"
    path.write_text(text.replace(WRITTEN, pool))
    return path


def faults_of(path: Path, *settings: str) -> tuple[str, ...]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(str(path), settings)
    return caught.value.faults


def test_a_size_alone_is_the_semaphore_of_before() -> None:
    pool = load_scenario("hello").pool
    assert pool.model_dump(mode="json") == {
        "size": 8, "queue": 100_000, "acquire_timeout_ns": 300 * 10**9,
        "transfer_timeout_ns": 300 * 10**9, "chunk_bytes": 2 * 2**20, "source_port": 20_000,
    }  # fmt: skip
    assert load_scenario("hello", ("pool.discipline=fifo",)).pool == pool


def test_each_discipline_has_its_defaults(tmp_path: Path) -> None:
    lanes = load_scenario(str(written(tmp_path, "pool: {discipline: lanes}"))).pool
    assert (lanes.discipline, lanes.size, lanes.queue) == (Lanes(), 4, 1_024)
    assert lanes.acquire_timeout_ns == 10**9
    each = load_scenario(str(written(tmp_path, "pool: {discipline: per-transfer}"))).pool
    assert each.discipline == PerTransfer(ports=28_232)
    assert (each.size, each.most, each.queue) == (None, 28_232, 0)
    stack = load_scenario(str(written(tmp_path, "pool: {discipline: lifo}"))).pool
    assert stack.discipline == Lifo(ports=28_232, idle_timeout_ns=10 * 10**9)


def test_parameters_are_taken_and_the_written_out_scenario_is_equal(tmp_path: Path) -> None:
    text = (
        "pool: {discipline: lifo, size: 90, order: smallest-first, ports: 100, "
        "idle_timeout: 3 s, source_port: 9000}"
    )
    scenario = load_scenario(str(written(tmp_path, text)))
    pool = scenario.pool
    assert (pool.size, pool.order, pool.queue) == (90, Order.SMALLEST_FIRST, 100_000)
    assert pool.discipline == Lifo(ports=100, idle_timeout_ns=3 * 10**9)
    whole = parse_document(scenario.resolved_yaml(), "whole.yaml")
    assert load_document(whole, HELLO).file == scenario.file


@pytest.mark.parametrize(
    ("pool", "reason"),
    [
        ("discipline: lofi", "unknown discipline; known: 'fifo', 'per-transfer', 'lifo', 'lanes'"),
        ("discipline: 3", "unknown discipline"),
        ("discipline: [fifo]", "unknown discipline"),
        ("discipline: per-transfer, idle_timeout: 1 s", "idle_timeout: unknown key"),
        ("size: 8, ports: 9", "ports: unknown key; known: acquire_timeout, chunk"),
        ("discipline: lifo, idle_time: 1 s", "did you mean 'idle_timeout'?"),
        ("discipline: lifo, queue: 5", "queue: does nothing without size"),
        ("discipline: lifo, order: smallest-first", "order: does nothing without size"),
        ("discipline: lifo, size: 9, ports: 8", "9 connections at a time need as many source"),
        ("discipline: lifo, idle_timeout: 0 s", "idle_timeout: must be longer than 0 ns"),
        ("discipline: lanes, acquire_timeout: 0 s", "acquire_timeout: must be longer than 0 ns"),
        ("size: 4, stripes: 5", "stripes: a transfer cannot go over more than the 4 of size"),
        ("size: 4, preempt: true", "preempt: needs an order in which somebody comes before"),
        ("discipline: lifo, preempt: true", "preempt: needs an order"),
        ("order: smallest-first, preempt: true, stripes: 2", "preempt: a transfer over several"),
        ("order: smallest-first, preempt: 1", "valid boolean"),
        ("discipline: lifo, stripes: 65", "less than or equal to 64"),
        ("discipline: lanes, size: 5000", "less than or equal to 4096"),
        ("discipline: lanes, order: last", "'first-come', 'smallest-first'"),
        ("discipline: lifo, source_port: 40000", "28232 source ports from port 40000 pass 60999"),
        ("discipline: lifo, ports: 60000", "use fewer"),
        ("discipline: lanes, source_port: 32766", "hands out itself"),
        ("discipline: lifo, source_port: 6000", "7000 and 7001, on which agents listen"),
        ("size: 8, source_port: 6999", "7000 and 7001, on which agents listen"),
    ],
)
def test_what_cannot_be_is_refused_at_its_line(tmp_path: Path, pool: str, reason: str) -> None:
    path = written(tmp_path, f"pool: {{{pool}}}")
    faults = faults_of(path)
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "pool:" in text)
    assert len(faults) == 1, faults
    assert faults[0].startswith(f"{path}:{line}: pool")
    assert reason in faults[0]


@pytest.mark.parametrize("value", ["3", "none", "[1]"])
def test_a_pool_is_a_mapping(tmp_path: Path, value: str) -> None:
    assert (
        "must be a mapping of keys to values" in faults_of(written(tmp_path, f"pool: {value}"))[0]
    )


def test_another_discipline_replaces_the_pool_and_the_same_mixes(tmp_path: Path) -> None:
    written(tmp_path, "pool: {size: 8, queue: 7}")
    upper = tmp_path / "upper.yaml"

    def above(pool: str) -> Path:
        upper.write_text(f"name: upper\ndescription: d\nextends: study\npool: {{{pool}}}\n")
        return upper

    mixed = load_scenario(str(above("discipline: fifo, size: 9"))).pool
    assert (mixed.discipline, mixed.size, mixed.queue) == (Fifo(), 9, 7)
    other = load_scenario(str(above("discipline: lifo"))).pool
    assert (other.size, other.queue) == (None, 0)
    assert load_scenario(str(above("queue: 3"))).pool.queue == 3


def test_a_setting_changes_the_discipline_and_keeps_what_it_shares() -> None:
    pool = load_scenario("pool-wide-skewed", ("pool.discipline=per-transfer",)).pool
    assert (pool.discipline, pool.size) == (PerTransfer(ports=28_232), 160)
    (fault,) = faults_of(HELLO, "pool.discipline=lofi")
    assert fault.startswith("--set pool.discipline: pool.discipline: unknown discipline")


def test_ports_rest_and_can_be_chosen_only_where_connections_are_closed() -> None:
    settings = {
        kind: dict(agent_sysctls(scenario.tcp, scenario.pool))
        for kind in ("fifo", "lanes", "lifo", "per-transfer")
        for scenario in [load_scenario("hello", (f"pool.discipline={kind}",))]
    }
    resting = {kind for kind, values in settings.items() if BUCKETS in values}
    assert resting == {"lifo", "per-transfer"}
    ranges = {kind: values["net.ipv4.ip_local_port_range"] for kind, values in settings.items()}
    assert ranges == {
        "fifo": "32768 60999", "lanes": "32768 60999",
        "lifo": "20000 60999", "per-transfer": "20000 60999",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((), "8 connections a pair"),
        (("pool.order=smallest-first",), "8 connections a pair, smallest-first"),
        (("pool.discipline=lanes",), "lanes: at most 8 connections a pair"),
        (
            ("pool.order=earliest-deadline", "pool.preempt=true"),
            "8 connections a pair, lent between chunks, earliest-deadline",
        ),
        (("pool.stripes=3",), "8 connections a pair, a transfer over up to 3"),
        (("pool={discipline: lifo}",),
         "lifo: connections without a bound, 28232 source ports, closed after 10 s idle"),
    ],
)  # fmt: skip
def test_the_summary_names_what_is_not_the_default(settings: tuple[str, ...], words: str) -> None:
    assert _pooled(load_scenario("hello", settings).pool) == words
