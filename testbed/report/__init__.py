"""Reports: a run folder in, one self-contained HTML page out.

The room reads the record through ``testbed.checks`` and draws; it computes nothing that
is not in the record, and changes nothing but the page it writes.
"""

from __future__ import annotations

from testbed.report.comparison import write_comparison
from testbed.report.run_report import write_report
from testbed.report.study import Comparison, Study, compare_study

__all__ = ["Comparison", "Study", "compare_study", "write_comparison", "write_report"]
