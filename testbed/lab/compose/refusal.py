"""What an Engine, a builder or pip said → one error with a remedy. Pure."""

from __future__ import annotations

import re

from testbed.errors import HostError

_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"no space left on device|disk quota exceeded|not enough free space",
        "the disk is full",
        "make room, for example with: docker image prune; testbed gc",
    ),
    (
        r"TORCH=cpu, but",
        "only a CUDA build of torch was to be had",
        "name an index with CPU builds in TORCH_INDEX, or take --torch cuda",
    ),
    (
        r"the base image has no Python 3\.11|python3: not found|ensurepip is not",
        "the base image has no Python 3.11 with its venv module",
        "take another --base, or --base debian",
    ),
    (
        r"manifest unknown|pull access denied|repository does not exist|manifest for .* not found"
        r"|no such image|unable to find image",
        "the base image is neither here nor to be had",
        "name one that is here with --base, or take --base debian or --base local",
    ),
    (
        r"temporary failure in name resolution|could not resolve|no such host"
        r"|network is unreachable|name or service not known|connection timed out"
        r"|i/o timeout|TLS handshake timeout"
        r"|failed to establish a new connection|failed getting release file|proxyconnect",
        "the network does not lead there",
        "see to the network, or use what is here: --base local, packages in pip's find-links",
    ),
    (
        r"no matching distribution found|could not find a version that satisfies",
        "a pinned package is not to be had from the package index at hand",
        "see what pip is set to (pip config list); the pins stand in agents/requirements-*.txt",
    ),
    (
        r"permission denied.*docker\.sock|docker.*permission denied",
        "this user may not speak to the Engine",
        "join the group docker (log in anew after that), or call as root",
    ),
    (
        r"docker daemon: |connection refused|connection aborted|cannot connect to the docker daemon"
        r"|FileNotFoundError|connection reset by peer",
        "no Engine answers",
        "start it (systemctl start docker), or name one in DOCKER_HOST",
    ),
)
_TAIL_LINES = 6


def refusal(attempt: str, subject: str, said: str, remedy: str = "") -> HostError:
    """The error for a failure that a program or the Engine told in words.

    Args:
        attempt: what was being done.
        subject: the object it was done to.
        said: all that was said, of any length; its last lines are quoted.
        remedy: what to do where none of the known causes fits.
    """
    quoted = " | ".join(line.strip() for line in said.splitlines() if line.strip())
    lines = [line.strip() for line in said.splitlines() if line.strip()][-_TAIL_LINES:]
    for pattern, cause, known_remedy in _KNOWN:
        if re.search(pattern, quoted, re.IGNORECASE):
            return HostError(attempt, subject, "\n    ".join((cause, *lines)), known_remedy)
    cause = "\n    ".join(lines) or "it said nothing"
    return HostError(attempt, subject, cause, remedy or "see the words above")
