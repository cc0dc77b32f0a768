"""Fake runs whose pools are no plain semaphore, made from one whose pool is."""

from __future__ import annotations

import json
from pathlib import Path

Line = dict[str, object]
OPEN_NS = 20_000_000


def events_of(run: Path, node: str = "p1") -> list[Line]:
    text = (run / "events" / f"{node}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def write_events(run: Path, lines: list[Line], node: str = "p1") -> None:
    """Numbered anew, in the order given."""
    for number, line in enumerate(lines):
        line["seq"] = number
    path = run / "events" / f"{node}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def change_pool(run: Path, **pool: object) -> None:
    """The plan's pool, of every agent."""
    path = run / "plan.json"
    plan = json.loads(path.read_text())
    for agent in plan["agents"]:
        agent["pool"] |= pool
    path.write_text(json.dumps(plan))


def opens_on_demand(run: Path, size: int | None = None) -> None:
    """Every acquisition takes the opening of its connection, which ends with the release."""
    change_pool(run, size=size, discipline={"kind": "per-transfer", "ports": 100})
    told: list[Line] = []
    for line in events_of(run):
        of = {"node": "p1", "seq": 0, "size": 0, "peer": "md1", "conn": line.get("conn")}
        opens = {**of, "t": line["t"], "req": line.get("req")}
        if line["kind"] == "pool.acquired":
            told.append({**opens, "kind": "connection.opening"})
            told.append({**opens, "kind": "connection.opened", "took_ns": 0, "open": 1})
        told.append(line)
        if line["kind"] == "pool.released":
            closed = {**of, "t": line["t"], "kind": "connection.closed"}
            told.append({**closed, "reason": "after-use", "open": 0})
    write_events(run, told)


def striped(run: Path, size: int, apart: int) -> None:
    """Every transfer goes over a second connection too, ``apart`` numbers from its own."""
    change_pool(run, size=size, stripes=2)
    told: list[Line] = []
    for line in events_of(run):
        conn = int(str(line.get("conn", 0))) + apart
        more = {"t": line["t"], "node": "p1", "seq": 0, "size": 0, "peer": "md1", "conn": conn}
        more |= {"req": line.get("req"), "busy": 2, "waiting": 0}
        if line["kind"] == "pool.released":
            told.append({**more, "kind": "pool.left"})
        told.append(line)
        if line["kind"] == "pool.acquired":
            told.append({**more, "kind": "pool.joined"})
    write_events(run, told)
