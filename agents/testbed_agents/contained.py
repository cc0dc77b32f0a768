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

from testbed.contract.meeting import BARRIER, STOP, Meeting, Said, drain
from testbed.errors import AgentError

_BARRIER_WAIT_S = 600
_LOOK_AGAIN_S = 1.0


def run_contained(run: Path, node: str, virtual: bool) -> int:
    """Loads what the agent needs, says so, and runs it to its end; the agent's exit status."""
    from testbed_agents.control.steady import steady_libzmq
    from testbed_agents.mains import MAINS, MODEL_FREE
    from testbed_agents.runtime import read_config, run_agent

    meeting = Meeting(run)
    config = read_config(run / "agents" / f"{node}.json")
    if virtual:
        steady_libzmq()
    if config.role not in MODEL_FREE:
        from testbed_agents.model import preload

        preload(config.model)

    def ready() -> None:
        meeting.say(Said.READY, node)

    if virtual:
        return run_agent(config, MAINS[config.role], ready, virtual=True)
    ready()
    until = time.time_ns() + _BARRIER_WAIT_S * 10**9
    barrier_ns = int(meeting.wait(Said.WORD, BARRIER, until))
    config = config.model_copy(update={"barrier_ns": barrier_ns})
    return run_agent(config, MAINS[config.role], lambda: None)


def _child(run: Path, node: str, virtual: bool) -> int:
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
        status = run_contained(run, node, virtual)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(folder: str, node: str, clock: str) -> int:
    """The container's program; its exit status is the agent's."""
    run = Path(folder)
    meeting = Meeting(run)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child: int | None = _child(run, node, clock == "virtual")
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
