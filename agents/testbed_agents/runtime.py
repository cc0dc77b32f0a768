"""What every agent does around its own work: clock, events, barrier, signals, exit status."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from testbed.contract.agent import AgentConfig
from testbed.contract.defect import Defect
from testbed.contract.event import EventLog, Kind
from testbed.contract.progress import FOLDER, Mark
from testbed.contract.role import Role
from testbed_agents.clock import AgentClock, new_loop
from testbed_agents.control.mailbox import QUEUE_MAX, WAITING_QUEUE, Mailbox
from testbed_agents.descriptors import raise_descriptors
from testbed_agents.trouble import Trouble

LAYERS_PER_MARK = 8
"""A mark is a system call and reads the clock: small models should hardly make any between
layers, and a layer of a large one takes far less than the 120 s after which a run is stuck."""


Ready = Callable[[], int | None]
"""Returns the time of the barrier where only now somebody knows it, else None."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The surroundings of one agent; made after entering its namespace."""

    config: AgentConfig
    clock: AgentClock
    events: EventLog
    mailbox: Mailbox
    mark: Mark
    stop: asyncio.Event
    """Set when the lab asks the agent to end (SIGTERM)."""
    ready: Ready
    """Tells the lab that this agent waits at the barrier; see ``Ready``."""
    trouble: Trouble
    """The faults that this agent is to suffer by its own hand."""

    @property
    def router(self) -> str:
        """The router of the serving plane, which has one."""
        return next(peer.name for peer in self.config.peers if peer.role is Role.ROUTER)

    @property
    def patience_s(self) -> float | None:
        """How long a transfer may take, on the loop's time; None: for ever."""
        if not self.config.guards(Defect.TRANSFER_DEADLINE):
            return None
        return self.clock.seconds(self.config.pool.transfer_timeout_ns)

    def progress(self) -> None:
        """Marks progress between layers and steps; most calls only count."""
        self.mark.step(self.clock.realtime_ns())

    def layer_progress(self) -> Callable[[], None]:
        """For ``Engine.watch``: marks progress after every ``LAYERS_PER_MARK``-th layer."""
        passed = 0

        def layer() -> None:
            nonlocal passed
            passed += 1
            if passed % LAYERS_PER_MARK == 0:
                self.mark.touch(self.clock.realtime_ns())

        return layer

    async def barrier(self) -> None:
        """Passes the common barrier; nothing may be connected before it."""
        if self.clock.virtual:
            self.events.emit(Kind.AGENT_READY, role=self.config.role.value)
            self.ready()
        else:
            barrier_ns = self.ready()
            if barrier_ns is not None:
                self.clock.start(barrier_ns)
            self.events.emit(Kind.AGENT_READY, role=self.config.role.value)
        await self.clock.until(0)
        self.events.emit(Kind.BARRIER)
        self.events.flush()
        self.trouble.start()


Main = Callable[[Runtime], Awaitable[None]]


def run_agent(
    config: AgentConfig,
    main: Main,
    ready: Ready,
    before_start: Callable[[], None] = lambda: None,
    virtual: bool = False,
) -> int:
    """Runs one agent to its end and returns its exit status (0 fine, 1 broke its contract).

    ``before_start`` runs when all files are open and before anything else: the place
    to give up privileges.
    """
    stream = open(config.events, "x", encoding="utf-8")  # noqa: SIM115  # closed below, after fsync
    raise_descriptors()
    mark = Mark(Path(config.events).parent.parent / FOLDER, config.node)
    before_start()
    clock = AgentClock(config.barrier_ns, virtual, slow=config.slow)
    events = EventLog(stream, config.node, clock)
    if config.mortal:
        events = EventLog(stream, config.node, clock, flush_every=1)
    clock.late = partial(_tell_late_step, events)
    status = 1
    try:
        loop = new_loop()
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(_drive(config, clock, events, mark, main, ready))
        status = 0
    except BaseException:
        traceback.print_exc(file=sys.stderr)
    finally:
        if not virtual:
            clock.lateness.tell(events)
        events.emit(Kind.AGENT_STOP, status=status)
        events.flush()
        os.fsync(stream.fileno())
        stream.close()
    return status


def _tell_late_step(events: EventLog, profile_ns: int, took_ns: int) -> None:
    events.emit(Kind.STEP_LATE, profile_ns=profile_ns, took_ns=took_ns)


async def _drive(
    config: AgentConfig,
    clock: AgentClock,
    events: EventLog,
    mark: Mark,
    main: Main,
    ready: Ready,
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    waits = not config.guards(Defect.NONBLOCKING_CONTROL)
    with Mailbox(
        config.node, config.address, config.control_port, config.peers, config.slow,
        queue=WAITING_QUEUE if waits else QUEUE_MAX, incarnation=config.incarnation, waits=waits,
    ) as mailbox:  # fmt: skip
        trouble = Trouble(config, clock, events, mailbox.silence)
        runtime = Runtime(config, clock, events, mailbox, mark, stop, ready, trouble)
        await trouble.beside(main(runtime))


async def until_stopped(stop: asyncio.Event, *work: Awaitable[None]) -> None:
    """Runs ``work`` until the lab says stop; a failure in any of it propagates at once."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_wrap(item)) for item in work]
        await stop.wait()
        for task in tasks:
            task.cancel()


async def _wrap(item: Awaitable[None]) -> None:
    await item


def read_config(path: Path) -> AgentConfig:
    """The agent's one configuration file."""
    return AgentConfig.model_validate(json.loads(path.read_text(encoding="utf-8")))
