"""What an Engine, a builder or pip says becomes one error with the right remedy."""

from __future__ import annotations

import pytest

from testbed.errors import ExitStatus
from testbed.lab.compose.engine import command_status, refuse_old, version_of
from testbed.lab.compose.refusal import refusal

pytestmark = pytest.mark.unit

SAID = [
    ("write /opt/venv/x.so: no space left on device", "disk is full", "image prune"),
    ("ERROR: Could not install: [Errno 28] No space left on device", "disk is full", "make room"),
    (
        "Error while fetching server API version: ('Connection aborted.', "
        "FileNotFoundError(2, 'No such file or directory'))",
        "no Engine answers", "systemctl start docker",
    ),
    (
        "HTTPConnectionPool(host='localhost', port=2375): Max retries exceeded: "
        "[Errno 111] Connection refused",
        "no Engine answers", "DOCKER_HOST",
    ),
    (
        "permission denied while trying to connect to the Docker daemon socket at "
        "unix:///var/run/docker.sock",
        "may not speak", "group docker",
    ),
    ("manifest for nothing:1 not found: manifest unknown", "neither here", "--base debian"),
    ("pull access denied for nothing, repository does not exist", "neither here", "--base"),
    (
        "Get https://registry.invalid/v2/: dial tcp: lookup registry.invalid: no such host",
        "network does not lead", "--base local",
    ),
    (
        "WARNING: Retrying: Temporary failure in name resolution\n"
        "ERROR: No matching distribution found for torch==2.13.0",
        "network does not lead", "find-links",
    ),
    ("ERROR: No matching distribution found for torch==2.13.0", "pinned package", "pip config"),
    ("/bin/sh: 1: python3: not found", "no Python 3.11", "--base debian"),
    ("E: Failed getting release file http://mirror.invalid/", "network does not lead", "--base"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "cause", "remedy"), SAID)
def test_a_known_cause_is_told_with_its_remedy(said: str, cause: str, remedy: str) -> None:
    error = refusal("build the image", "agent", said)
    assert cause in error.cause
    assert remedy in error.remedy
    assert said.splitlines()[-1] in error.cause
    assert error.exit_status is ExitStatus.UNABLE


def test_an_unknown_cause_is_quoted_with_its_last_lines_only() -> None:
    error = refusal("build", "x", "\n".join(f"line {n}" for n in range(100)), "look there")
    assert error.cause.split() == [w for n in range(94, 100) for w in ("line", str(n))]
    assert error.remedy == "look there"
    assert refusal("build", "x", "").cause == "it said nothing"


def test_a_steps_own_text_is_no_cause() -> None:
    words = "The command '/bin/sh -c a || echo no space left\n b' returned a non-zero code: 3"
    assert command_status(words) == "the step returned a non-zero code: 3"
    assert command_status("COPY failed: no source files") == "COPY failed: no source files"


@pytest.mark.parametrize("version", ["19.03.15", "20.9", "1.13.1", "", "nonsense"])
def test_an_engine_older_than_20_10_is_refused(version: str) -> None:
    with pytest.raises(Exception, match=r"older than 20\.10"):
        refuse_old(version)


@pytest.mark.parametrize("version", ["20.10.24+dfsg1", "28.2.2", "29.0.0-rc.1"])
def test_later_engines_are_taken(version: str) -> None:
    refuse_old(version)
    assert version_of(version) >= (20, 10)
