"""Published figures that free efficiencies are fitted to, and the load they belong to.

All are from the PDD paper: its text, or public notes on its tables where the tables
themselves are not public. docs/hardware.md says which figure fixes which parameter.
"""

from __future__ import annotations

INPUT_TOKENS = 65_536
MEAN_OUTPUT_TOKENS = 1_000
MEAN_CONTEXT_TOKENS = INPUT_TOKENS + MEAN_OUTPUT_TOKENS // 2
"""Context of a sequence half way through a mean answer."""

HIT_LOW, HIT_SPAN = 0.02, 0.97
HIT_BETA = (0.788, 0.081)
"""Hit rates: Beta on 2 to 99 %, mean 90 %; its parameters fit the published shares."""

PREFILL_INSTANCES = 10
DECODE_INSTANCES = 16

EXTEND_TOKENS = 100
EXTEND_S = 0.3052
"""Table 5: extend-decode of 100 tokens, mean."""

COPIES_S = 0.0245
"""Table 5: host-device copies of 100 tokens of incremental KV, both ways together."""

TPOT_LIMIT_S = 0.050
TTFT_MEDIAN_S = 3.9
"""Table 4, P and D in one data centre. P90 10.4 s and P99 17.2 s are not fitted."""

IDC_REQUESTS_S = 9.0
PDD_REQUESTS_S = 11.5
"""Table 8: requests per second of the two deployments."""

RDMA_BIT_S = 400e9
"""The network between P and D in one data centre."""
