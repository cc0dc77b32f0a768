"""Forks one agent per node out of a process that has loaded everything already.

Importing torch costs seconds and hundreds of megabytes; loaded once and forked,
thirty agents share it. Each child enters its node's network namespace, opens its files,
gives up every capability, and only then runs.

Speaks JSON lines on stdout: ``{"ready": node}`` and ``{"exit": node, "status": n}``. Under a real
clock nobody knows beforehand how long that takes: who is ready then waits for the time of the
barrier, which comes as 8 bytes for each agent through a pipe.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from testbed.contract.agent import AgentConfig
from testbed.errors import AgentError
from testbed_agents.control.steady import steady_libzmq
from testbed_agents.mains import MAINS, MODEL_FREE
from testbed_agents.runtime import read_config, run_agent

_CLONE_NEWNET = 0x40000000
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP, _PR_SET_NAME = 38, 24, 15
_libc = ctypes.CDLL(None, use_errno=True)
_OBJECTS_PER_COLLECTION = 50_000
"""New objects before the collector looks for cycles: an agent makes hardly any."""
BARRIER = struct.Struct("=q")
_SIGNALS = frozenset({signal.SIGTERM, signal.SIGCHLD})


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one agent runs: its configuration, its namespace, its log."""

    config: str
    namespace: str
    log: str


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def give_up_privileges(owner: int, group: int) -> None:
    """Becomes the run folder's owner, without any capability and without a way back."""
    for capability in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(owner, owner, owner)
    header = _CapHeader(0x20080522, 0)
    empty = (ctypes.c_uint32 * 6)()
    if _libc.capset(ctypes.byref(header), ctypes.byref(empty)) != 0:
        raise AgentError("give up capabilities", "capset", os.strerror(ctypes.get_errno()))
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _child(place: Placement, config: AgentConfig, say: int, told: int | None) -> int:
    namespace = os.open(place.namespace, os.O_RDONLY | os.O_CLOEXEC)
    if _libc.setns(namespace, _CLONE_NEWNET) != 0:
        raise AgentError("enter the namespace", config.node, os.strerror(ctypes.get_errno()))
    os.close(namespace)
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    _libc.prctl(_PR_SET_NAME, config.node.encode()[:15], 0, 0, 0)
    owner = os.stat(Path(config.events).parent)

    def ready() -> int | None:
        os.write(say, (json.dumps({"ready": config.node}) + "\n").encode())
        return None if told is None else _barrier(told, config.node)

    return run_agent(
        config,
        MAINS[config.role],
        ready,
        lambda: give_up_privileges(owner.st_uid, owner.st_gid),
        virtual=told is None,
    )


def _barrier(told: int, node: str) -> int:
    """Waits for the time of the barrier (CLOCK_REALTIME); writes of 8 bytes come in one piece."""
    data = os.read(told, BARRIER.size)
    if len(data) != BARRIER.size:
        raise AgentError("wait for the barrier's time", node, "the lab went away")
    return int(BARRIER.unpack(data)[0])


def _fork(place: Placement, config: AgentConfig, say: int, told: int | None) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        status = _child(place, config, say, told)
    except BaseException as error:
        os.write(2, f"{config.node}: {type(error).__name__}: {error}\n".encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(path: str, told: int | None) -> int:
    """Reads the placements, loads what the agents need, forks them, reports their ends.

    Args:
        told: descriptor by which the barrier's time comes; None under the virtual clock, where
            it stands in the configuration, and nothing may depend on the host's speed.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # before any thread: all inherit it
    if told is None:
        steady_libzmq()
    listed = json.loads(Path(path).read_text(encoding="utf-8"))
    places = [Placement(**item) for item in listed]
    configs = [read_config(Path(place.config)) for place in places]
    models = {c.model.model_dump_json(): c.model for c in configs if c.role not in MODEL_FREE}
    if models:
        from testbed_agents.model import preload

        for model in models.values():
            preload(model)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    say = os.dup(1)
    running = {
        _fork(place, config, say, told): config.node
        for place, config in zip(places, configs, strict=True)
    }

    while running:
        # sigwait, not a handler and wait(2): a signal that arrives between the interpreter's
        # last look at its flags and the system call would be seen only after the next end
        if signal.sigwait(_SIGNALS) == signal.SIGTERM:
            for pid in running:
                os.kill(pid, signal.SIGTERM)
        while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            line = {"exit": running.pop(pid), "status": os.waitstatus_to_exitcode(status)}
            os.write(say, (json.dumps(line) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], None if sys.argv[2] == "virtual" else int(sys.argv[3])))
