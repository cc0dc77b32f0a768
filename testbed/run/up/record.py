"""What wires wrote on their own becomes the record that every lab leaves.

::

    lab/measured/<wire>.rows.json       ─▶ fidelity.json
    lab/measured/<wire>.samples.jsonl   ─▶ events/lab.jsonl, renumbered in the order of time
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from testbed.contract.demand import Costs
from testbed.contract.event import Kind
from testbed.contract.meeting import Meeting, Said
from testbed.contract.network import Network
from testbed.errors import AnalysisError, FidelityError
from testbed.run.folder import write_json

ROWS, SAMPLES = ".rows.json", ".samples.jsonl"
_LAB = "lab"
Line: TypeAlias = dict[str, object]


def wires_of(network: Network) -> tuple[str, ...]:
    """Every wire of a network that has a link, in build order."""
    return tuple(dict.fromkeys(link.wire for link in network.links))


def gather_costs(run: Path, network: Network) -> Costs:
    """What a packet costs on the slowest wire.

    Raises:
        FidelityError: a wire measured nothing.
    """
    found = list(_found(run, network, "costs"))
    superframe, frame = (
        max(float(str(one[name])) for one in found) for name in ("superframe_s", "frame_s")
    )
    return Costs(superframe, frame)


def _found(run: Path, network: Network, section: str) -> Iterator[Line]:
    for wire in wires_of(network):
        text = Meeting(run).heard(Said.MEASURED, f"{wire}{ROWS}")
        if text is None:
            raise FidelityError("gather what wires measured", wire, "it measured nothing")
        yield from json.loads(text)[section]


def gather_fidelity(run: Path, network: Network) -> None:
    """Writes ``fidelity.json`` from what every wire found.

    Raises:
        FidelityError: a quantity is not as planned.
    """
    sections: dict[str, list[Line]] = {
        name: list(_found(run, network, name)) for name in ("measured", "fields")
    }
    write_json(run / "fidelity.json", sections)
    everything = [*sections["measured"], *sections["fields"]]
    wrong = [row for row in everything if not row["ok"]]
    if wrong:
        first = wrong[0]
        what = first.get("quantity") or first.get("field")
        raise FidelityError(
            "build the links", run.name,
            f"{len(wrong)} of {len(everything)} quantities are not as planned, first "
            f"{first['link']} {first['direction']} {what}: "
            f"{first.get('measured') or first.get('applied')}",
            "see fidelity.json; other programs may have been in the way",
        )  # fmt: skip


def gather_samples(run: Path, network: Network) -> None:
    """Writes ``events/lab.jsonl`` from the samples of every wire.

    Raises:
        AnalysisError: samples are missing: a wire ended early, or its file was cut.
    """
    folder = Meeting(run).folder / Said.MEASURED.value
    begun: list[Line] = []
    samples: list[Line] = []
    ended: list[Line] = []
    for wire in wires_of(network):
        lines = list(_whole(folder / f"{wire}{SAMPLES}"))
        begun.append(lines[0])
        samples.extend(lines[1:-1])
        ended.append(lines[-1])
    samples.sort(key=lambda line: int(str(line["t"])))
    first = min(begun, key=lambda line: int(str(line["t"])))
    last = max(ended, key=lambda line: int(str(line["t"])))
    with (run / "events" / f"{_LAB}.jsonl").open("x", encoding="utf-8") as stream:
        for number, line in enumerate([first, *samples, last]):
            stream.write(json.dumps({**line, "seq": number}, separators=(",", ":")) + "\n")


def _whole(path: Path) -> Iterator[Line]:
    """The lines of one wire's samples, which begin with its readiness and end with its stop."""
    kinds: list[str] = []
    try:
        with path.open(encoding="utf-8") as stream:
            for number, text in enumerate(stream):
                line = json.loads(text)
                if line["seq"] != number:
                    raise ValueError(f"line {number + 1} has number {line['seq']}")
                kinds.append(line["kind"])
                yield line
    except (OSError, ValueError, KeyError) as error:
        raise AnalysisError(
            "gather the samples of wires", str(path), str(error), "see logs/ of the run folder"
        ) from error
    if len(kinds) < 2 or (kinds[0], kinds[-1]) != (Kind.AGENT_READY, Kind.AGENT_STOP):
        raise AnalysisError(
            "gather the samples of wires", str(path), "they have no end: the wire ended early",
            "see logs/ of the run folder",
        )  # fmt: skip
