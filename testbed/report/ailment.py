"""Faults that agents apply themselves, in words."""

from __future__ import annotations

from testbed.contract.ailment import (
    AgentEffect,
    Backlog,
    DropConnection,
    FewDescriptors,
    FewPorts,
    Jump,
    Leak,
    Leave,
    Shrink,
    Silence,
    SkipChunk,
    SlowCompute,
    Stale,
    Stall,
)
from testbed.report import wording


def ailment(effect: AgentEffect) -> str:
    """What happens to the agent, in emulated units."""
    match effect:
        case SlowCompute(factor=factor):
            return f"steps take {factor:g} times their profile"
        case Stall():
            return "reads no KV"
        case FewDescriptors(left=left):
            return f"may open {left} files and sockets more"
        case Jump(offset_ns=ns):
            way = "ahead" if ns > 0 else "behind"
            return f"its wall clock is {wording.seconds(abs(ns) / 1e9)} {way}"
        case Backlog(length=length):
            return f"accepts no connection; {length + 1} wait in the kernel"
        case Silence(delay_ns=None):
            return "hears no control message"
        case Silence(delay_ns=ns):
            return f"hears control messages {wording.seconds((ns or 0) / 1e9)} late"
        case Leave():
            return _leave(effect)
        case Shrink(peer=peer, lose=lose):
            return f"{lose} connections to {peer} fewer"
        case Leak(peer=peer, each=each):
            return f"one of {each} loans of connections to {peer} is never given back"
        case FewPorts(peer=peer, left=left):
            return f"{left} source ports to {peer} left"
        case DropConnection(peer=peer, connection=connection, clean=clean):
            how = "ended in order" if clean else "reset"
            return f"connection {connection} to {peer} is {how}"
        case SkipChunk(peer=peer, chunk=chunk, transfer=transfer):
            which = "the last chunk" if chunk is None else f"chunk {chunk + 1}"
            return f"{which} of {_transfer(transfer)} to {peer} is never sent"
        case Stale(peer=peer, transfer=transfer):
            return f"{_transfer(transfer)} to {peer} has other pages than its digests say"


def _transfer(number: int | None) -> str:
    return "every transfer" if number is None else f"transfer {number}"


def _leave(effect: Leave) -> str:
    told = "and says so" if effect.clean else "and tells nobody"
    if effect.after_ns is None and effect.tokens is None:
        return f"leaves the request of that transfer, {told}"
    who = f"{wording.share(effect.share)} of its requests"
    if effect.requests:
        who = f"requests {', '.join(map(str, effect.requests))}"
    when = f"{wording.seconds((effect.after_ns or 0) / 1e9)} after it sent them"
    if effect.tokens is not None:
        when = f"after {effect.tokens} tokens"
    return f"leaves {who} {when}, {told}"
