"""Which connection pool, for KV whose sizes differ as the paper's two distributions do.

The paper compares no pools: it has one, and says when it is used up (Table 2).
"""

from __future__ import annotations

from testbed.reproduce import delivery
from testbed.reproduce.poolfinding import CLAIMS, MEAN, P50, P99, REFUSED, SMALL, TRANSFER
from testbed.reproduce.pooltable import charts, tables
from testbed.reproduce.poolway import FULL, LIGHT, NARROW, WIDE, label, variants
from testbed.reproduce.study import Contrast, Measure, Study

STUDY = Study(
    name="pool",
    title="Connection pools: disciplines, orders, stripes and pre-emption",
    question="What does each way to give transfers their connections cost or save, on a line that "
    "is nearly idle and on one that is full, with sizes that differ and with sizes that are alike?",
    variants=variants,
    measures=(
        Measure(P50, "Delivery, P50", delivery.p50),
        Measure(P99, "Delivery, P99", delivery.p99),
        Measure(MEAN, "Delivery, mean", delivery.mean),
        Measure(SMALL, "Delivery of the smaller half, P90", delivery.small_p90),
        Measure(TRANSFER, "Transfer, P50"),
        Measure("pool.wait_mean_s", "Wait, mean"),
        Measure("pool.occupancy_mean", "Connections in use"),
        Measure("pool.open_peak", "Most connections open"),
        Measure(REFUSED, "Refused by the pool", delivery.refused_share),
        Measure("offered_load", "Load of the line"),
    ),
    contrasts=tuple(
        Contrast(
            f"fresh-{hits}-{load}",
            f"Median over fresh connections over that of the last used, {hits}, {load} line",
            label(hits, load, "per-transfer"), label(hits, load, "lifo"), P50,
            lambda own, base: own / base,
        )
        for hits in (WIDE, NARROW)
        for load in (LIGHT, FULL)
    ),
    claims=CLAIMS,
    assumptions=(
        "Delivery is from asking for a connection to the last acknowledgement: wait, opening and "
        "transfer. A transfer that is refused has none, so the times of lanes on a full line are "
        "those of the ones it let in.",
        "The scenarios of Table 2: 80 requests/s of 64K tokens, 2 x 10 Gbit/s, RTT 20 ms, CUBIC. "
        "Runs of one distribution and seed have the same arrivals and hits; the load rescales all "
        "sizes by one factor. Windows are shorter than in Table 2.",
        "A quick run asks for the full load on a tenth of the line.",
        "Numbers of connections are chosen: 160 as in Table 2, 16 (quick: 8) so that somebody "
        "waits, 4 lanes "
        "with 1 s of patience as lanes have without further words. RTT, loss and congestion "
        "control are not varied: a longer line makes slow start dearer in proportion.",
        "One P and one MD, prefill takes no time: no deadline differs from the order of arrival.",
    ),
    charts=charts,
    tables=tables,
)  # fmt: skip
