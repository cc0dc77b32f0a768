"""Table 7: prices, and the latencies that each deployment reaches; the runs are Table 8's."""

from __future__ import annotations

from dataclasses import replace

from testbed.reproduce import table8

STUDY = replace(table8.STUDY, name="table7")
