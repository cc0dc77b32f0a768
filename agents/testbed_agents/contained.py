"""One agent in a container of its own: the first process there, and the agent as its child.

The parent loads nothing heavy. It says how the agent ended, tells it when the run stops, and stays
until the container is stopped: a container that ends early would end all others of the project.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path

from testbed.contract.health import Health
from testbed.contract.meeting import BARRIER, LOAD, STOP, Meeting, Said, drain
from testbed.contract.note import NoRunError, run_of
from testbed.errors import AgentError

_WAIT_NS = 600 * 10**9
_LOOK_AGAIN_S = 1.0
_STOPS = frozenset({signal.SIGTERM, signal.SIGINT})


def run_contained(run: Path, node: str, virtual: bool, health: Health | None = None) -> int:
    """Loads what the agent needs, says so, and runs it to its end; the agent's exit status.

    Links are measured first: loading would be in the way of a live clock, and what agents say to
    each other before the barrier in the way of the frames that measure.

    Args:
        health: told when it is ready.
    """
    meeting = Meeting(run)
    meeting.wait(Said.WORD, LOAD, time.time_ns() + _WAIT_NS)
    from testbed_agents.control.steady import steady_libzmq
    from testbed_agents.mains import MAINS, MODEL_FREE
    from testbed_agents.runtime import read_config, run_agent

    config = read_config(run / "agents" / f"{node}.json")
    if virtual:
        steady_libzmq()
    if config.role not in MODEL_FREE:
        from testbed_agents.model import preload

        preload(config.model)

    def ready() -> int | None:
        meeting.say(Said.READY, node)
        if health is not None:
            health.say_ready()
        if virtual:
            return None
        return int(meeting.wait(Said.WORD, BARRIER, time.time_ns() + _WAIT_NS))

    return run_agent(config, MAINS[config.role], ready, virtual=virtual)


def _child(run: Path, node: str, virtual: bool, health: Health | None) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        log = os.open(run / "logs" / f"{node}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        status = run_contained(run, node, virtual, health)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(folder: str, node: str, clock: str) -> int:
    """The container's program; its exit status is the agent's.

    Args:
        folder: the run folder; or that of all runs, where containers are on their own.
    """
    try:
        run = run_of(Path(folder))
    except NoRunError:
        print("there is no run to take part in")
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        signal.sigwait(_STOPS)
        return 0
    alone = run != Path(folder)
    health = Health() if alone and os.getpid() == 1 else None  # the client's speaks by its leader
    meeting = Meeting(run)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    if alone:
        meeting.say(Said.HERE, node)
    child: int | None = _child(run, node, clock == "virtual", health)
    status = 0
    told = False
    with meeting.news(Said.WORD) as news:
        while child is not None or not asked:
            if child is not None:
                pid, raw = os.waitpid(child, os.WNOHANG)
                if pid:
                    child, status = None, os.waitstatus_to_exitcode(raw)
                    meeting.say(Said.ENDED, node, str(status))
                    continue
                if not told and (asked or meeting.heard(Said.WORD, STOP) is not None):
                    os.kill(child, signal.SIGTERM)
                    told = True
            ready, _, _ = select.select([reader, news], [], [], _LOOK_AGAIN_S)
            if reader in ready:
                os.read(reader, 4096)
            if news in ready:
                drain(news, 0)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise AgentError("start an agent", " ".join(sys.argv), "RUN NODE CLOCK are needed")
    sys.exit(main(*sys.argv[1:]))
