"""Every finding of every study has figures that make it fail, and a row that forgets one fails."""

from __future__ import annotations

import pytest

from testbed.checks.finding import Status
from testbed.reproduce.catalogue import known, study_of
from testbed.reproduce.extent import Extent
from testbed.reproduce.reduce import judge
from tests.fakes.outcomes import outcomes

Figures = dict[tuple[str, str], float]
_SLA: Figures = {
    (label, name): 1.0
    for label in ("pdd-11-5", "idc-11-5")
    for name in ("sla.ttft_share", "sla.tpot_share")
}
_CHIPS = ("h100", "a", "c", "e")

BAD: dict[str, Figures] = {
    # Table 4
    "overlap-pays-on-a-full-line": {
        ("pdd-105", "ttft.p90_s"): 10.0, ("cdc-105", "ttft.p90_s"): 10.0,
    },
    "no-gap-at-the-published-rate": {
        ("pdd-015", "ttft.p90_s"): 5.0, ("cdc-015", "ttft.p90_s"): 10.0,
    },
    "gap-grows-with-load": {
        (f"{one}-{load}", "ttft.p90_s"): value
        for one, load, value in (
            ("pdd", "015", 5.0), ("cdc", "015", 10.0), ("pdd", "105", 10.0), ("cdc", "105", 10.0),
        )
    },
    "pdd-like-one-datacentre": {
        ("pdd-015", "ttft.p90_s"): 20.0, ("pdd-105", "ttft.p90_s"): 20.0,
        ("idc", "ttft.p90_s"): 10.0,
    },
    "relay-hides-the-transfer": {("pdd-105", "relay.masked_share"): 0.5},
    "short-answers-agree": {
        (own, name): value
        for own, value in (("full", 6.0), ("pdd-over", 5.0))
        for name in ("ttft.p50_s", "ttft.p90_s", "ttft.p99_s")
    },
    "lower-rate-is-cautious": {
        (own, name): value
        for own, value in (("bytes", 4.0), ("bytes-buffers", 4.0), ("rates", 5.0))
        for name in ("ttft.p50_s", "ttft.p90_s", "ttft.p99_s")
    },
    # Figure 7
    "transfers-fluctuate": {
        ("cdc-015", "transfer.p99_over_p50"): 10.0, ("cdc-105", "transfer.p99_over_p50"): 10.0,
        ("cdc-015", "transfer.over_alone_p99_over_p50"): 3.0,
        ("cdc-105", "transfer.over_alone_p99_over_p50"): 3.0,
    },
    "spikes-reach-the-user": {
        ("cdc-105", "ttft.transfer_share"): 0.3, ("pdd-105", "ttft.transfer_share"): 0.3,
    },
    "pdd-sidesteps": {("pdd-105", "relay.masked_share"): 0.5},
    # handoffs and Table 5
    "catch-up-never-stalls": {("catch-up", "stall.count"): 1.0, ("catch-up", "gap_mean_s"): 0.3},
    "one-shot-dips-briefly": {
        ("one-shot", "gap_mean_s"): 0.6, ("one-shot", "gap_max_s"): 0.9,
        ("catch-up", "gap_mean_s"): 0.06,
    },
    "catch-up-costs-output": {
        ("catch-up", "rld.output_tokens_mean"): 100.0,
        ("one-shot", "rld.output_tokens_mean"): 100.0,
    },
    "dynamic-uses-both": {("dynamic", "serving.handoffs_by_mode.one-shot"): 3.0},
    "ids-are-flat": {
        ("incremental-kv", "kv_sd_s"): 0.1, ("incremental-kv", "kv_mean_s"): 0.2,
        ("token-ids", "extend_sd_s"): 0.1, ("token-ids", "extend_mean_s"): 0.3,
    },
    "kv-has-a-tail": {("incremental-kv", "kv_max_s"): 0.2, ("incremental-kv", "kv_mean_s"): 0.2},
    "kv-is-bulky": {
        ("incremental-kv", "kv_100_bytes"): 9e3, ("token-ids", "id_100_bytes"): 1e3,
    },
    # caches and routes
    "rld-decodes-far-less": {("as-published", "rld.token_share"): 0.2},
    "share-grows-with-load": {
        ("as-published", "rld.token_share"): 0.02, ("narrow-line", "rld.token_share"): 0.02,
    },
    "cut-is-the-uncached-part": {
        (f"{name}-{state}", measure): value
        for name in ("wide", "narrow")
        for state, measure, value in (
            ("drc", "request_bytes", 33e6), ("none", "request_bytes", 330e6),
            ("drc", "cache.md_hit", 0.5),
        )
    },
    "splits-three-to-one": {("h-95", "relayed_share"): 0.6},
    "split-follows-h": {("h-90", "relayed_share"): 0.3, ("h-95", "relayed_share"): 0.2},
    "random-choice-collapses": {
        ("random", "cache.md_hit"): 0.9, ("session-sticky", "cache.md_hit"): 0.9,
    },
    "parity-holds": {
        ("pdd", "gap_share"): 0.2, ("pdd", "serving.parity.p_hit"): 0.9,
        ("pdd", "serving.parity.md_hit"): 0.7,
    },
    "p-rld-breaks-parity": {
        ("pdd", "gap_share"): 0.0, ("p-rld", "gap_share"): 0.0,
        ("p-rld", "serving.parity.p_hit"): 0.9, ("p-rld", "serving.parity.md_hit"): 0.9,
    },
    # chips and costs
    "chips-rank-as-published": {
        (f"{chip}-{phase}", f"{phase}_rate"): float(place)
        for place, chip in enumerate(_CHIPS)
        for phase in ("prefill", "decode")
    },
    "limit-is-kept": {(f"{chip}-decode", "tpot.p90_s"): 0.06 for chip in _CHIPS},
    "pdd-has-the-higher-bcr": {
        **_SLA, ("pdd-11-5", "kept_rps"): 5.0, ("idc-11-5", "kept_rps"): 11.0,
    },
    "md-steps-faster-than-d": {
        ("pdd-11-5", "tpot.p50_s"): 0.05, ("idc-11-5", "tpot.p50_s"): 0.05,
    },
    "rld-amortises": {(f"p-{n}", "busy_share"): 0.95 for n in (5, 10, 20)},
    "rld-turns-nobody-away": {
        ("p-10", "serving.pipelines.P-RLD-MD"): 9.0,
        **{(f"p-{n}", "router.turned_away"): 3.0 for n in (5, 10, 20)},
    },
    "half-goes-far": {("prfaas", "offloaded_share"): 0.1, ("prfaas", "egress-gbit"): 5.0},
    "threshold-spares-the-line": {
        ("prfaas", "egress-gbit"): 9.0, ("all-far", "egress-gbit"): 9.0,
    },
    # connection pools
    **{
        name: {
            (f"{hits}-{way}", measure): value
            for hits in ("wide", "narrow")
            for way, value in ((own, 0.05), (base, peer))
        }
        for name, own, base, measure, peer in (
            ("fresh-costs-several-fold", "light-per-transfer", "light-lifo",
             "delivery.p50_s", 0.05),
            ("idle-is-as-cold-as-fresh", "light-fifo", "light-per-transfer", "transfer.p50_s", 0.1),
            ("kept-windows-are-the-gain", "light-fifo", "light-fifo-warm", "delivery.p50_s", 0.05),
            ("full-line-hides-it", "full-per-transfer", "full-lifo", "delivery.mean_s", 0.01),
            ("small-need-not-queue", "full-few-small", "full-few", "delivery.small_p90_s", 0.05),
            ("preempting-helps-the-small", "full-few-preempt", "full-few-small",
             "delivery.small_p90_s", 0.05),
            ("deadline-is-arrival-here", "full-few-deadline", "full-few", "delivery.p50_s", 0.1),
        )
    },
    "lanes-turn-away": {
        (f"wide-full-{way}", "refused_share"): 0.0
        for way in ("fifo", "lanes", "few", "few-small")
    },
}  # fmt: skip
CLAIMS = [(study, claim.name) for study in known() if study != "table2"
          for claim in study_of(study).claims]  # fmt: skip


@pytest.mark.parametrize(("study", "name"), CLAIMS)
def test_every_finding_can_fail(study: str, name: str) -> None:
    figures = outcomes({key: {1: value} for key, value in BAD[name].items()}, Extent.QUICK)
    claim = next(one for one in study_of(study).claims if one.name == name)
    assert judge(claim, figures).status is Status.FAIL


@pytest.mark.parametrize(
    ("study", "name", "figures"),
    [
        ("drc", "cut-is-the-uncached-part", {
            (f"{name}-{state}", measure): {seed: value}
            for name in ("wide", "narrow")
            for state, measure, seed, value in (
                ("drc", "request_bytes", 1, 33e6), ("none", "request_bytes", 2, 330e6),
                ("drc", "cache.md_hit", 1, 0.9),
            )
        }),
        ("routing", "split-follows-h", {
            ("h-90", "relayed_share"): {1: 0.1}, ("h-95", "relayed_share"): {2: 0.2},
        }),
    ],
)  # fmt: skip
def test_no_finding_holds_where_no_seed_can_be_compared(
    study: str, name: str, figures: dict[tuple[str, str], dict[int, float]]
) -> None:
    claim = next(one for one in study_of(study).claims if one.name == name)
    finding = judge(claim, outcomes(figures, Extent.QUICK))
    assert finding.status is Status.FAIL
    assert "no seed has a faithful run" in finding.violations[0]


@pytest.mark.parametrize(("study", "name"), CLAIMS)
def test_no_finding_holds_without_its_figures(study: str, name: str) -> None:
    claim = next(one for one in study_of(study).claims if one.name == name)
    assert judge(claim, outcomes({}, Extent.QUICK)).status is not Status.PASS
