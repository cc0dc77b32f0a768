"""TCA_OPTIONS of netem: struct tc_netem_qopt followed by attributes.

Source of numbers and layouts: include/uapi/linux/pkt_sched.h and
net/sched/sch_netem.c (6.12). pyroute2 0.9 has neither the seed, nor distributions,
nor loss models, nor slot, nor 64-bit rates and delays, hence this encoder.
"""

from __future__ import annotations

import struct

from testbed.errors import FidelityError
from testbed.shaping.attribute import attribute, nested, s64, table, u32, u64
from testbed.shaping.qdisc import U32_MAX, GeModel, GiModel, Netem, SlotConfig
from testbed.shaping.ratespec import TICK_NS

QOPT = struct.Struct("=6I")
CORR = struct.Struct("=3I")
PAIR = struct.Struct("=2I")
RATE = struct.Struct("=IiIi")
SLOT = struct.Struct("=qqiiqq")
GI = struct.Struct("=5I")
GE = struct.Struct("=4I")

A_CORR, A_DELAY_DIST, A_REORDER, A_CORRUPT, A_LOSS, A_RATE, A_ECN, A_RATE64 = range(1, 9)
A_LATENCY64, A_JITTER64, A_SLOT, A_SLOT_DIST, A_PRNG_SEED = range(10, 15)
LOSS_GI, LOSS_GE = 1, 2
TABLE_MAX = 16_384


def encode_netem(spec: Netem) -> bytes:
    """The payload of TCA_OPTIONS. The kernel takes the 64-bit values where both are given."""
    parts = [
        QOPT.pack(
            min(spec.latency_ns // TICK_NS, U32_MAX),
            spec.limit,
            spec.loss,
            spec.gap,
            spec.duplicate,
            min(spec.jitter_ns // TICK_NS, U32_MAX),
        ),
        s64(A_LATENCY64, spec.latency_ns),
        s64(A_JITTER64, spec.jitter_ns),
        attribute(
            A_CORR,
            CORR.pack(spec.delay_correlation, spec.loss_correlation, spec.duplicate_correlation),
        ),
        attribute(A_REORDER, PAIR.pack(spec.reorder, spec.reorder_correlation)),
        attribute(A_CORRUPT, PAIR.pack(spec.corrupt, spec.corrupt_correlation)),
        attribute(
            A_RATE,
            RATE.pack(
                min(spec.rate, U32_MAX), spec.packet_overhead, spec.cell_size, spec.cell_overhead
            ),
        ),
        u32(A_ECN, int(spec.ecn)),
    ]
    if spec.rate > U32_MAX:
        parts.append(u64(A_RATE64, spec.rate))
    if spec.loss_model is not None:
        parts.append(nested(A_LOSS, _encode_loss(spec.loss_model)))
    if spec.slot is not None:
        parts.append(attribute(A_SLOT, _encode_slot(spec.slot)))
    if spec.table:
        if len(spec.table) > TABLE_MAX:
            raise FidelityError(
                "encode netem", "distribution", f"{len(spec.table)} entries exceed {TABLE_MAX}"
            )
        parts.append(attribute(A_DELAY_DIST, struct.pack(f"={len(spec.table)}h", *spec.table)))
    parts.append(u64(A_PRNG_SEED, spec.seed))
    return b"".join(parts)


def decode_netem(options: bytes) -> Netem:
    """What the kernel says it holds. Distribution tables are never dumped."""
    if len(options) < QOPT.size:
        raise FidelityError("decode netem", "TCA_OPTIONS", f"only {len(options)} bytes")
    latency, limit, loss, gap, duplicate, jitter = QOPT.unpack_from(options)
    found = table(options, QOPT.size)
    delay_c, loss_c, duplicate_c = CORR.unpack(found.get(A_CORR, bytes(CORR.size)))
    reorder, reorder_c = PAIR.unpack(found.get(A_REORDER, bytes(PAIR.size)))
    corrupt, corrupt_c = PAIR.unpack(found.get(A_CORRUPT, bytes(PAIR.size)))
    rate, overhead, cell, cell_overhead = RATE.unpack(found.get(A_RATE, bytes(RATE.size)))
    return Netem(
        limit=limit,
        latency_ns=_int(found, A_LATENCY64, "=q", latency * TICK_NS),
        jitter_ns=_int(found, A_JITTER64, "=q", jitter * TICK_NS),
        rate=_int(found, A_RATE64, "=Q", rate),
        packet_overhead=overhead,
        cell_size=cell,
        cell_overhead=cell_overhead,
        loss=loss,
        loss_model=_decode_loss(found[A_LOSS]) if A_LOSS in found else None,
        duplicate=duplicate,
        corrupt=corrupt,
        gap=gap,
        reorder=reorder,
        delay_correlation=delay_c,
        loss_correlation=loss_c,
        duplicate_correlation=duplicate_c,
        reorder_correlation=reorder_c,
        corrupt_correlation=corrupt_c,
        ecn=_int(found, A_ECN, "=I", 0) != 0,
        slot=SlotConfig(*SLOT.unpack(found[A_SLOT])) if A_SLOT in found else None,
        seed=_int(found, A_PRNG_SEED, "=Q", 0),
    )


def _encode_slot(slot: SlotConfig) -> bytes:
    return SLOT.pack(
        slot.min_delay_ns,
        slot.max_delay_ns,
        slot.max_packets,
        slot.max_bytes,
        slot.dist_delay_ns,
        slot.dist_jitter_ns,
    )


def _encode_loss(model: GiModel | GeModel) -> bytes:
    match model:
        case GiModel():
            return attribute(
                LOSS_GI, GI.pack(model.p13, model.p31, model.p32, model.p14, model.p23)
            )
        case GeModel():
            return attribute(LOSS_GE, GE.pack(model.p, model.r, model.h, model.k1))


def _decode_loss(data: bytes) -> GiModel | GeModel | None:
    found = table(data)
    if LOSS_GI in found:
        return GiModel(*GI.unpack(found[LOSS_GI]))
    if LOSS_GE in found:
        return GeModel(*GE.unpack(found[LOSS_GE]))
    return None


def _int(found: dict[int, bytes], kind: int, layout: str, absent: int) -> int:
    if kind not in found:
        return absent
    value: int = struct.unpack(layout, found[kind])[0]
    return value
