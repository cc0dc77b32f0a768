"""The house rules that a linter does not know."""

from __future__ import annotations

import ast
import re

import pytest

from tests.repo.checkout import ROOT, lines_of, modules, text_files

VAGUE = {"util", "utils", "helper", "helpers", "common", "manager", "base", "misc"}

# Split, so that this file does not hold the words it looks for.
OUT_OF_PLACE = (
    "/wo" + "rk/", "/tm" + "p/kb", ".lib" + "rary/", "TO" + "DO", "FIX" + "ME", "XX" + "X:",
    "NotImplemented" + "Error", "/ro" + "ot/.pyenv", "/opt/py" + "pi", "sess" + "ion budget",
)  # fmt: skip

COMMON_PACKAGE_HOSTS = re.compile(r"https?://(?:[\w.-]*\.)?(?:pypi\.org|pythonhosted\.org)")


def test_no_file_is_longer_than_500_lines() -> None:
    long = {str(p.relative_to(ROOT)): len(lines_of(p)) for p in modules()}
    assert {name: n for name, n in long.items() if n > 500} == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    names = {p.relative_to(ROOT) for p in modules() if VAGUE & {*p.parts, p.stem}}
    assert names == set()


def test_input_is_never_checked_by_an_assertion() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Assert)
    ]
    assert found == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in modules()
        if ast.get_docstring(ast.parse(path.read_text("utf-8"))) is None
    ]
    assert silent == []


@pytest.mark.parametrize("words", OUT_OF_PLACE)
def test_no_file_names_a_place_or_a_gap_that_does_not_belong_here(words: str) -> None:
    found = []
    for path in text_files():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if words in text:
            found.append(str(path.relative_to(ROOT)))
    assert found == []


def test_no_file_names_the_host_of_a_package_index() -> None:
    found = []
    for path in text_files():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if COMMON_PACKAGE_HOSTS.search(text):
            found.append(str(path.relative_to(ROOT)))
    assert found == []
