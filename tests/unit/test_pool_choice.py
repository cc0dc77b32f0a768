"""From the plan's pool to its rule: which one, and what cannot be."""

from __future__ import annotations

import pytest

from testbed.contract.pool import Fifo, Lanes, Lifo, PerTransfer, Pool
from testbed_agents.pool import FifoPool, LanesPool, LifoPool, PerTransferPool, discipline_of


@pytest.mark.parametrize(
    ("kind", "rule", "size", "standing"),
    [
        (Fifo(), FifoPool, 3, 3),
        (Lanes(), LanesPool, 3, 0),
        (PerTransfer(ports=5), PerTransferPool, None, 0),
        (Lifo(ports=5, idle_timeout_ns=9), LifoPool, 2, 0),
    ],
)
def test_the_plan_chooses_the_rule(
    kind: Fifo | Lanes | PerTransfer | Lifo, rule: type, size: int | None, standing: int
) -> None:
    pool = Pool(
        size=size, queue=2, acquire_timeout_ns=9, transfer_timeout_ns=9, chunk_bytes=1,
        source_port=2_000, discipline=kind,
    )  # fmt: skip
    chosen = discipline_of(pool)
    assert type(chosen) is rule
    assert chosen.standing == standing
    assert pool.most == (size or 5)
    assert pool.numbers == getattr(kind, "ports", size)


def test_a_pool_that_cannot_be_is_refused_and_the_default_is_not_written() -> None:
    values = {
        "queue": 2, "acquire_timeout_ns": 9, "transfer_timeout_ns": 9, "chunk_bytes": 1,
        "source_port": 2_000,
    }  # fmt: skip
    with pytest.raises(ValueError, match="of kind lanes needs a size"):
        Pool.model_validate({**values, "size": None, "discipline": Lanes()})
    with pytest.raises(ValueError, match="3 source ports cannot hold 4"):
        Pool.model_validate({**values, "size": 4, "discipline": PerTransfer(ports=3)})
    pool = Pool.model_validate({**values, "size": 4})
    assert pool.model_dump(mode="json") == {"size": 4, **values}
    lanes = Pool.model_validate({**values, "size": 4, "discipline": Lanes()})
    assert Pool.model_validate_json(lanes.model_dump_json()) == lanes
