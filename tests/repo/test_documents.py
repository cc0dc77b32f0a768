"""What the documents promise exists."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.repo.checkout import ROOT

DOCUMENTS = (
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md",
    "docs/limitations.md", "LICENSE",
)  # fmt: skip

PROMISED_TARGETS = {
    "setup", "setup-containers", "demo", "test", "check", "clean",
    "test-unit", "test-lab", "test-containers", "test-gpu",
}  # fmt: skip


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_document_exists_and_is_not_empty(name: str) -> None:
    assert len((ROOT / name).read_text("utf-8")) > 300


def test_the_makefile_has_every_promised_target() -> None:
    assert make_targets() >= PROMISED_TARGETS


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_of_a_document_exists(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    commands = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))
    assert commands
    assert commands <= make_targets()


def readme_commands() -> list[list[str]]:
    text = (ROOT / "README.md").read_text("utf-8")
    lines = re.findall(r"^\.venv/bin/testbed ([a-z0-9 -]+?)(?: +#.*)?$", text, re.MULTILINE)
    return [line.split() for line in lines]


def test_the_readme_shows_commands() -> None:
    assert len(readme_commands()) >= 3


@pytest.mark.parametrize("words", readme_commands(), ids=" ".join)
def test_every_testbed_command_of_the_readme_is_understood(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "testbed", words[0], "--help"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for option in (word for word in words if word.startswith("--")):
        assert option in done.stdout


def test_every_link_of_a_document_leads_somewhere() -> None:
    for document in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text("utf-8")):
            if "://" not in link:
                assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(p.name[:4]) for p in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_room_is_in_the_code_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    rooms = sorted(p.parent.name for p in (ROOT / "testbed").glob("*/__init__.py"))
    assert [r for r in rooms if f"`{r}`" not in text and f"/{r}`" not in text] == []


def documents() -> list[str]:
    return sorted(
        str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    )


@pytest.mark.parametrize("name", documents())
def test_nothing_stands_twice_in_a_document(name: str) -> None:
    lines = [line for line in (ROOT / name).read_text("utf-8").splitlines() if len(line) > 40]
    assert [line for line in set(lines) if lines.count(line) > 1] == []
