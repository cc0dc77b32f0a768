"""The document of the checks lists those that there are, and which of them decide."""

from __future__ import annotations

import re
from pathlib import Path

from testbed.checks import CHECKS, Status, judge
from tests.fakes.fake_run import FakeRun
from tests.fakes.run_folder import write_run_folder

TEXT = (Path(__file__).parents[2] / "docs" / "checks.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([a-z-]+)` \|.*\| ([a-z ]+) \|$", TEXT, re.MULTILINE))


def test_every_check_is_listed_in_its_order() -> None:
    assert list(ROWS) == [check.name for check in CHECKS]


def test_the_document_says_which_checks_decide(tmp_path: Path) -> None:
    run = write_run_folder(tmp_path / "run", FakeRun(rate=20, warm_up_s=1, measure_s=2, pool=4))
    decides = {finding.check: finding.decides for finding in judge(run).findings}
    assert decides == {name: broken != "a remark" for name, broken in ROWS.items()}
    assert f"All {sum(decides.values())} checks pass; 1 remark." in TEXT
    assert set(ROWS.values()) == {Status.FAIL.value, Status.INVALID.value, "a remark"}
