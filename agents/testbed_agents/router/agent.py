"""The router agent: keeps a picture of the cluster, decides, tells every instance its part.

What it knows comes from what it sent and from notes: ``prefilled`` (P), ``transferred``
(P, value duration in ns), ``relayed`` (RLD gave the request up), ``released`` (MD did),
``matched`` (P and MD, value blocks that their caches hold of the prompt), ``unkept`` (the
same, where there is no room for the others). Its picture of the caches is what it sent
where, within each instance's budget, corrected by what they matched.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.contract.agent import Span
from testbed.contract.block_key import block_keys
from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.contract.serving import Serving
from testbed.errors import AgentError
from testbed_agents.cache import PrefixIndex
from testbed_agents.control.plane import Ask, Assign, Note, Prepare, Relay
from testbed_agents.handoff.message import Cancel, Failure
from testbed_agents.router.decide import Decider, Route
from testbed_agents.router.view import (
    ClusterView,
    InstanceView,
    LegView,
    PoolView,
    RequestFacts,
)
from testbed_agents.runtime import Runtime, until_stopped


@dataclass(slots=True)
class Standing:
    """What the router believes about one instance."""

    role: Role
    site: str
    most: int
    """Sequences of a full batch; 0 for P, which has no such limit."""
    queued_tokens: int = 0
    active: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Under:
    """A request under way."""

    route: Route
    uncached: int
    wire_bytes: int
    keys: tuple[int, ...]
    known: dict[str, int]
    """Blocks of it that P and MD were believed to hold."""
    prefilled: bool = False


class RouterAgent:
    """State of one router."""

    def __init__(self, runtime: Runtime, serving: Serving) -> None:
        self._runtime = runtime
        self._serving = serving
        config = runtime.config
        self._decider = Decider(serving.router)
        sites, most = dict(serving.site_of), dict(serving.most_sequences)
        self._standing = {
            peer.name: Standing(peer.role, sites[peer.name], most.get(peer.name, 0))
            for peer in config.peers
            if peer.role in (Role.PREFILL, Role.RELAY, Role.DECODE)
        }
        block_bytes = config.shape.block_tokens * config.shape.bytes_per_token
        budgets = {
            Role.PREFILL: serving.caches.prefill_bytes // block_bytes,
            Role.DECODE: serving.caches.decode_bytes // block_bytes,
        }
        self._index = {role: PrefixIndex(blocks) for role, blocks in budgets.items() if blocks}
        self._under: dict[int, Under] = {}
        self._transfer_ns: dict[tuple[str, str], int] = {}

    async def run(self) -> None:
        """Serves until the lab says stop."""
        block = self._runtime.config.shape.block_tokens
        for segment, tokens in self._serving.documents:
            keys = tuple(block_keys((Span(segment=segment, tokens=tokens),), block))
            for name, standing in self._standing.items():
                if standing.role in self._index:
                    self._index[standing.role].record(name, keys)
        for peer in self._runtime.config.peers:
            self._runtime.mailbox.connect(peer.name)
        await self._runtime.barrier()
        await until_stopped(self._runtime.stop, self._listen())

    async def _listen(self) -> None:
        while True:
            sender, message = await self._runtime.mailbox.receive()
            match message:
                case Ask():
                    self._route(message)
                case Note():
                    self._note(sender, message)
                case Cancel(req):
                    self._cancel(req)
                case _:
                    raise AgentError("obey a control message", sender, type(message).__name__)

    def _route(self, ask: Ask) -> None:
        shape = self._runtime.config.shape
        spans = tuple(
            Span(segment=segment, tokens=length)
            for segment, length in zip(ask.segments, ask.lengths, strict=True)
        )
        keys = tuple(block_keys(spans, shape.block_tokens))
        facts = RequestFacts(
            ask.req, sum(ask.lengths), shape.block_tokens,
            shape.block_tokens * shape.bytes_per_token, shape.fixed_bytes, ask.session,
        )  # fmt: skip
        hits = {role: index.longest(keys) for role, index in self._index.items()}
        try:
            route = self._decider.decide(facts, self._view(hits))
        except AgentError as error:
            self._runtime.mailbox.send(ask.client, Failure(ask.req, f"not-routed: {error.cause}"))
            return
        known_p = hits.get(Role.PREFILL, {}).get(route.prefill, 0)
        known_md = hits.get(Role.DECODE, {}).get(route.decode or "", 0)
        under = Under(
            route, facts.uncached_tokens(known_p), facts.wire_bytes(known_md), keys,
            {route.prefill: known_p, route.decode or "": known_md},
        )  # fmt: skip
        self._under[ask.req] = under
        self._runtime.events.emit(
            Kind.REQUEST_ROUTED, req=ask.req, pipeline=route.choice.pipeline.value,
            prefill=route.prefill, decode=route.decode or "", relay=route.relay or "",
            reason=route.choice.reason, prefill_hit=known_p, decode_hit=known_md,
        )  # fmt: skip
        self._standing[route.prefill].queued_tokens += under.uncached
        self._record(route.prefill, keys)
        for name in (route.relay, route.decode):
            if name is not None:
                self._standing[name].active.add(ask.req)
        if route.decode is not None:
            self._record(route.decode, keys)
        self._tell(ask, route)

    def _record(self, name: str, keys: tuple[int, ...]) -> None:
        index = self._index.get(self._standing[name].role)
        if index is not None:
            index.record(name, keys)

    def _correct(self, name: str, under: Under, blocks: int, kept: bool) -> None:
        """An instance holds less than was believed, or will not keep what it is sent."""
        index = self._index.get(self._standing[name].role)
        if index is None or (kept and blocks >= under.known.get(name, 0)):
            return
        index.shorten(name, under.keys, min(blocks, len(under.keys)))
        if kept:
            index.record(name, under.keys)

    def _cancel(self, req: int) -> None:
        """The client gave up: everybody who decodes for it returns what it holds."""
        under = self._under.get(req)
        if under is not None:
            for name in (under.route.relay, under.route.decode):
                if name is not None:
                    self._runtime.mailbox.send(name, Cancel(req))

    def _tell(self, ask: Ask, route: Route) -> None:
        """MD first: its match must be with P when the prefill ends."""
        send, relay, decode = self._runtime.mailbox.send, route.relay or "", route.decode or ""
        prompt = (ask.segments, ask.lengths)
        if decode:
            send(
                decode,
                Prepare(ask.req, *prompt, ask.output_tokens, route.prefill, relay, ask.client),
            )
        if relay:
            send(relay, Relay(ask.req, *prompt, ask.output_tokens, decode, ask.client))
        send(route.prefill, Assign(ask.req, *prompt, decode, relay, ask.client))

    def _note(self, sender: str, note: Note) -> None:
        under = self._under.get(note.req)
        if under is None:
            return
        match note.what:
            case "prefilled":
                self._standing[under.route.prefill].queued_tokens -= under.uncached
                under.prefilled = True
            case "matched" | "unkept":
                self._correct(sender, under, note.value, note.what == "matched")
            case "transferred":
                self._transfer_ns[under.route.prefill, under.route.decode or ""] = note.value
                under.wire_bytes = 0
            case "relayed" | "released":
                self._standing[sender].active.discard(note.req)
        if under.prefilled and not any(
            note.req in standing.active for standing in self._standing.values()
        ):
            del self._under[note.req]

    def _view(self, hits: dict[Role, dict[str, int]]) -> ClusterView:
        def of(role: Role) -> tuple[InstanceView, ...]:
            return tuple(
                InstanceView(
                    name, role, one.site, one.queued_tokens, len(one.active),
                    hits.get(role, {}).get(name, 0), one.most,
                )
                for name, one in self._standing.items()
                if one.role is role
            )  # fmt: skip

        prefills, decodes = of(Role.PREFILL), of(Role.DECODE)
        waiting: dict[tuple[str, str], int] = {}
        for under in self._under.values():
            if under.wire_bytes and under.route.decode:
                pair = (under.route.prefill, under.route.decode)
                waiting[pair] = waiting.get(pair, 0) + 1
        size = self._runtime.config.pool.size
        pools = {
            (p.name, d.name): PoolView(
                f"{p.site}-{d.site}",
                min(size, waiting.get((p.name, d.name), 0)),
                max(0, waiting.get((p.name, d.name), 0) - size),
                size,
                self._transfer_ns.get((p.name, d.name), 0),
            )
            for p in prefills
            for d in decodes
        }
        flows: dict[str, int] = {}
        for pair, count in waiting.items():
            leg = pools[pair].leg
            flows[leg] = flows.get(leg, 0) + count
        legs = {
            name: LegView(payload, 0.0, flows.get(name, 0), self._serving.rtt_ns)
            for name, payload in self._serving.leg_payload_bps
        }
        return ClusterView(
            self._runtime.clock.now_ns(), prefills, of(Role.RELAY), decodes, pools, legs
        )


async def router_main(runtime: Runtime) -> None:
    """Entry point of a router agent."""
    if runtime.config.serving is None:
        raise AgentError("start the router", runtime.config.node, "its config has no serving part")
    await RouterAgent(runtime, runtime.config.serving).run()
