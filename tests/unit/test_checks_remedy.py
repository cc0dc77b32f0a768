"""Errors of the analysis say what to do; a folder that no run left is named as such."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import testbed
from testbed.checks import require_run_folder
from testbed.errors import UsageError

ROOT = Path(testbed.__file__).parent
ROOMS = ("checks", "metrics", "report", "workload", "run")


def raised(path: Path) -> list[ast.Call]:
    """Every ``AnalysisError(…)`` that a module builds."""
    return [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "AnalysisError"
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_every_error_of_the_analysis_has_a_remedy(room: str) -> None:
    bare = [
        f"{path.name}:{call.lineno}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for call in raised(path)
        if len(call.args) + len(call.keywords) < 4
    ]
    assert bare == []


def test_a_missing_folder_is_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        require_run_folder(tmp_path / "nosuch")


def test_a_folder_of_other_things_is_no_run_folder(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text("name: hello\n")
    with pytest.raises(UsageError, match="is no run folder"):
        require_run_folder(tmp_path)
    (tmp_path / "plan.json").touch()
    require_run_folder(tmp_path)
