"""The client: offers the workload, records what a user would see.

Open loop: request k leaves at its own time whatever happens to the others.
Closed loop: ``closed_loop`` users each send the next request when their last one
ended. Every request ends exactly once, as done or as failed with a reason.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from testbed.contract.agent import Request
from testbed.contract.event import Kind
from testbed.errors import AgentError
from testbed_agents.client.session import LEFT, Asked
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.message import Failed, Submit, Tokens
from testbed_agents.runtime import Runtime

Submitting: TypeAlias = Callable[[Request], asyncio.Event]
"""Sends a request; the event is set when it has ended."""


class Answers:
    """State of all requests: the answer so far, and who waits for its end. Pure."""

    def __init__(self) -> None:
        self.tokens: dict[int, list[int]] = {}
        self._ended: dict[int, asyncio.Event] = {}

    def open(self, req: int) -> asyncio.Event:
        """A request was sent."""
        if req in self._ended:
            raise AgentError("send a request", str(req), "it was sent already")
        self.tokens[req] = []
        self._ended[req] = asyncio.Event()
        return self._ended[req]

    def is_open(self, req: int) -> bool:
        """Whether the request was sent and has not ended."""
        return req in self._ended and not self._ended[req].is_set()

    def unfinished(self) -> list[int]:
        """Requests that have not ended, in order."""
        return sorted(req for req, event in self._ended.items() if not event.is_set())

    def accept(self, req: int, position: int, token: int) -> str | None:
        """Takes a token; returns why it is wrong, or None when it is the next one."""
        if not self.is_open(req):
            return "token-after-end"
        if position != len(self.tokens[req]):
            return "token-out-of-order"
        self.tokens[req].append(token)
        return None

    def end(self, req: int) -> None:
        """The request is over."""
        self._ended[req].set()


def read_workload(path: Path) -> Iterator[Request]:
    """Requests in file order, read line by line."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield Request.model_validate(json.loads(line))


async def client_main(runtime: Runtime) -> None:
    """Runs until every request ended or the deadline passed."""
    config = runtime.config
    if config.workload is None:
        raise AgentError("start the client", config.node, "its config names no workload")
    turn, turns = config.turn
    requests = [one for one in read_workload(Path(config.workload)) if one.id % turns == turn]
    if config.serving is not None:
        await _ask(runtime, requests)
        return
    answers = Answers()
    runtime.trouble.leaving.leave = partial(_leave, runtime, answers)
    await runtime.barrier()
    for name in sorted({request.prefill for request in requests}):
        runtime.mailbox.connect(name)
    await _until_ended(
        runtime, requests,
        lambda request: _submit(runtime, answers, request),
        _listen(runtime, answers),
    )  # fmt: skip
    for req in answers.unfinished():
        _fail(runtime, answers, req, "deadline")


async def _ask(runtime: Runtime, requests: list[Request]) -> None:
    """The same through a router."""
    asked = Asked(runtime)
    await runtime.barrier()
    asked.connect()
    await _until_ended(runtime, requests, asked.submit, asked.listen(), asked.settle)
    asked.expire()


async def _until_ended(
    runtime: Runtime,
    requests: list[Request],
    submit: Submitting,
    listen: Coroutine[None, None, None],
    settle: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Offers all requests, until every one has ended, the deadline, or the lab says stop.

    ``settle`` is awaited once they have: others may still have something to finish.
    """
    users = runtime.config.closed_loop
    offer = (
        _open_loop(runtime, submit, requests)
        if users is None
        else _closed_loop(runtime, submit, requests, users)
    )
    listener = asyncio.create_task(listen)
    offering = asyncio.create_task(_and_then(offer, settle))
    deadline = asyncio.create_task(runtime.clock.until(runtime.config.window.deadline_ns))
    stopped = asyncio.create_task(runtime.stop.wait())
    await asyncio.wait((offering, deadline, listener, stopped), return_when=asyncio.FIRST_COMPLETED)
    for task in (offering, deadline, listener, stopped):
        if task.done():
            task.result()  # a failure propagates
        task.cancel()


async def _and_then(
    offer: Coroutine[None, None, None], settle: Callable[[], Awaitable[None]] | None
) -> None:
    await offer
    if settle is not None:
        await settle()


def _submit(runtime: Runtime, answers: Answers, request: Request) -> asyncio.Event:
    ended = answers.open(request.id)
    runtime.events.emit(
        Kind.REQUEST_SENT, request.wire_bytes, req=request.id, input_tokens=request.input_tokens,
        hit_tokens=request.hit_tokens, output_tokens=request.output_tokens,
    )  # fmt: skip
    runtime.mailbox.send(
        request.prefill,
        Submit(
            request.id, request.input_tokens, request.hit_tokens, request.output_tokens,
            request.blocks, request.wire_bytes, request.decode, runtime.config.node,
        ),
    )  # fmt: skip
    runtime.trouble.leaving.sent(request.id)
    runtime.progress()
    return ended


async def _open_loop(runtime: Runtime, submit: Submitting, requests: Iterable[Request]) -> None:
    ends = []
    for request in requests:
        await runtime.clock.until(request.at_ns)
        ends.append(submit(request))
    for ended in ends:
        await ended.wait()


async def _closed_loop(
    runtime: Runtime, submit: Submitting, requests: Iterable[Request], users: int
) -> None:
    rest = iter(requests)

    async def user() -> None:
        for request in rest:
            if runtime.clock.now_ns() >= runtime.config.window.end_ns:
                return
            await submit(request).wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(users):
            group.create_task(user())


async def _listen(runtime: Runtime, answers: Answers) -> None:
    while True:
        sender, message = await runtime.mailbox.receive()
        match message:
            case Tokens():
                _take(runtime, answers, sender, message)
            case Failed(req, reason):
                if answers.is_open(req):
                    _fail(runtime, answers, req, reason)
            case Departed():
                pass  # it takes nothing, and is sent nothing any more
            case _:
                raise AgentError("obey a control message", sender, type(message).__name__)


def _take(runtime: Runtime, answers: Answers, sender: str, message: Tokens) -> None:
    rows = zip(message.reqs, message.positions, message.tokens, message.last, strict=True)
    for req, position, token, last in rows:
        wrong = answers.accept(req, position, token)
        if wrong is not None:
            if answers.is_open(req):
                _fail(runtime, answers, req, wrong)
            continue
        runtime.events.emit(Kind.TOKEN, 0, req=req, pos=position, token=token, source=sender)
        runtime.trouble.leaving.shown(req, len(answers.tokens[req]))
        if last and answers.is_open(req):
            runtime.events.emit(Kind.REQUEST_DONE, 0, req=req, tokens=answers.tokens[req])
            answers.end(req)


def _leave(runtime: Runtime, answers: Answers, req: int, clean: bool) -> bool:
    """The user goes. A pool study has no message that says so: the plan refuses a clean one."""
    if not answers.is_open(req):
        return False
    _fail(runtime, answers, req, LEFT)
    return True


def _fail(runtime: Runtime, answers: Answers, req: int, reason: str) -> None:
    runtime.events.emit(Kind.REQUEST_FAILED, 0, req=req, reason=reason)
    answers.end(req)
