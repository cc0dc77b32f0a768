"""Dependencies: pinned once, locked, all used, none used without being named."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repo.checkout import ROOT, modules

IMPORTED_AS = {
    "jinja2": "jinja2", "pyzmq": "zmq", "ruamel-yaml": "ruamel",
}  # fmt: skip

COMPANIONS = {
    "markupsafe": "jinja2", "pydantic_core": "pydantic", "requests": "docker",
    "tokenizers": "transformers",
}  # fmt: skip
"""Packages that a named package brings along as part of its own interface."""

OURS = {"testbed", "testbed_agents", "_typeshed"}
"""What needs no package: ourselves, and the type checker's own names."""

NEVER_IMPORTED = {"accelerate", "gguf", "plotly", "pyarrow"}
"""transformers looks for the first two by itself when it reads a GGUF file, pandas for
pyarrow when it writes Parquet; of plotly only the JavaScript is taken, as package data."""


def project() -> dict[str, list[str]]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {"run": table["dependencies"], "check": table["optional-dependencies"]["check"]}


def build_requirements() -> list[str]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    requires: list[str] = table["build-system"]["requires"]
    return requires


def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    pins = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pins}


def test_every_direct_dependency_is_pinned_as_in_the_lock() -> None:
    lock = locked()
    for text in [*project()["run"], *project()["check"], *build_requirements()]:
        requirement = Requirement(text)
        version = lock.get(canonicalize_name(requirement.name))
        assert str(requirement.specifier) == f"=={version}", text


def test_the_lock_names_each_package_once_with_one_exact_version() -> None:
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9._-]+==[0-9][0-9a-z.]*", pin) for pin in pins)
    assert len(pins) == len(locked())


def imports() -> Iterator[tuple[str, str]]:
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names = [node.module]
            for name in names:
                yield str(path.relative_to(ROOT)), name.partition(".")[0]


def test_every_import_is_named_and_every_named_package_is_imported() -> None:
    named = {canonicalize_name(Requirement(text).name) for text in project()["run"]}
    modules_of = {IMPORTED_AS.get(name, name): name for name in named}
    foreign = {
        name for _, name in imports() if name not in sys.stdlib_module_names and name not in OURS
    }
    assert foreign - set(modules_of) - set(COMPANIONS) == set()
    assert {COMPANIONS[name] for name in foreign & set(COMPANIONS)} <= set(modules_of)
    assert {modules_of[n] for n in set(modules_of) - foreign} - NEVER_IMPORTED == set()


def test_set_up_and_what_it_imports_need_only_the_standard_library() -> None:
    reached, todo = set(), ["testbed/host/setup.py"]
    while todo:
        path = todo.pop()
        reached.add(path)
        for where, name in imports_of(path):
            assert name.partition(".")[0] in (sys.stdlib_module_names | {"testbed"}), where
            target = name.replace(".", "/")
            for candidate in (f"{target}.py", f"{target}/__init__.py"):
                if (ROOT / candidate).exists() and candidate not in reached:
                    todo.append(candidate)
    assert "testbed/host/environment.py" in reached
    assert "testbed/errors.py" in reached


def imports_of(path: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((path, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield path, node.module
            yield from ((path, f"{node.module}.{alias.name}") for alias in node.names)
