"""The router agent: keeps a picture of the cluster, decides, tells every instance its part.

What it knows comes from what it sent and from notes: ``prefilled`` and ``served`` (P),
``transferred`` (P, value duration in ns), ``relayed`` (RLD gave the request up), ``released``
(MD did), ``ended`` (the client has its answer), ``matched`` (P and MD, value blocks that their
caches hold of the prompt), ``unkept`` (the same, where there is no room for the others). Its
picture of the caches is what it sent where, within each instance's budget, corrected by what
they matched.

It also watches everybody: who departs is chosen no more and told to all as ``Lost``. What
follows from that, each instance decides; here only what nobody else can tell the client. An
instance that was lost is sought, ever less often: one that was only cut off, or was started anew,
forgets what it was asked and is chosen again (``Found``).
"""

from __future__ import annotations

from testbed.contract.agent import Span
from testbed.contract.attempt import attempt_id, number_of, request_of
from testbed.contract.block_key import block_keys
from testbed.contract.defect import Defect
from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.contract.serving import Serving
from testbed.errors import AgentError
from testbed_agents.cache import PrefixIndex
from testbed_agents.control.mailbox import Departed
from testbed_agents.control.plane import (
    NO_SESSION,
    Ask,
    Assign,
    Back,
    Found,
    Lost,
    Note,
    Orphaned,
    Prepare,
    Relay,
    Settle,
    Settled,
)
from testbed_agents.handoff.message import Cancel, Failure
from testbed_agents.router.alone import without_main
from testbed_agents.router.book import Book, Standing, Under
from testbed_agents.router.decide import Decider, Route
from testbed_agents.router.picture import Picture
from testbed_agents.router.seeking import Seeking
from testbed_agents.router.view import RequestFacts
from testbed_agents.runtime import Runtime, until_stopped


class RouterAgent:
    """State of one router."""

    def __init__(self, runtime: Runtime, serving: Serving) -> None:
        self._runtime = runtime
        self._serving = serving
        config = runtime.config
        self._decider = Decider(serving.router)
        sites, most = dict(serving.site_of), dict(serving.most_sequences)
        self._book = Book(
            {
                peer.name: Standing(peer.role, sites[peer.name], most.get(peer.name, 0))
                for peer in config.peers
                if peer.role in (Role.PREFILL, Role.RELAY, Role.DECODE)
            }
        )
        block_bytes = config.shape.block_tokens * config.shape.bytes_per_token
        budgets = {
            Role.PREFILL: serving.caches.prefill_bytes // block_bytes,
            Role.RELAY: serving.caches.relay_bytes // block_bytes,
            Role.DECODE: serving.caches.decode_bytes // block_bytes,
        }
        self._index = {role: PrefixIndex(blocks) for role, blocks in budgets.items() if blocks}
        self._roles = {peer.name: peer.role for peer in config.peers}
        self._lost: set[str] = set()
        self._seeking = Seeking(runtime)
        self._settling: dict[str, None] = {}
        """Clients that wait until nobody works for them."""
        self._tried: dict[int, frozenset[str]] = {}
        """MDs of a request's attempts that were given up."""
        self._picture = Picture(self._book, serving, config.pool.most)

    async def run(self) -> None:
        """Serves until the lab says stop."""
        block = self._runtime.config.shape.block_tokens
        for segment, tokens in self._serving.documents:
            keys = tuple(block_keys((Span(segment=segment, tokens=tokens),), block))
            for name, standing in self._book.standing.items():
                if standing.role in self._index:
                    self._index[standing.role].record(name, keys)
        for peer in self._runtime.config.peers:
            self._runtime.mailbox.watch(peer.name)
        await self._runtime.barrier()
        await until_stopped(self._runtime.stop, self._listen())

    async def _listen(self) -> None:
        while True:
            sender, message = await self._runtime.mailbox.receive()
            if sender in self._lost and not isinstance(message, Back | Departed):
                continue  # its last words: it was left already, and gets no answer
            match message:
                case Back():
                    self._find(sender)
                case Departed() if sender in self._lost:
                    self._seek(sender)
                case Ask():
                    self._route(message)
                case Note():
                    self._note(sender, message)
                case Cancel(req):
                    self._cancel(req)
                case Settle():
                    self._settling[sender] = None
                case Departed():
                    if self._runtime.config.guards(Defect.PEER_IDENTITY):
                        self._lose(sender)
                case _:
                    raise AgentError("obey a control message", sender, type(message).__name__)
            self._settle()

    def _settle(self) -> None:
        for client in tuple(self._settling):
            if not self._book.works_for(client):
                del self._settling[client]
                self._runtime.mailbox.send(client, Settled())

    def _lose(self, name: str) -> None:
        """Everybody is told first; then the clients what only the router knows."""
        role, mailbox = self._roles[name], self._runtime.mailbox
        self._lost.add(name)
        mailbox.drop(name)
        self._settling.pop(name, None)
        parts = self._book.lose(name)
        if parts or role is not Role.CLIENT:  # a client may leave when it has its answers
            self._runtime.events.emit(
                Kind.INSTANCE_LOST, peer=name, role=role.value, under_way=len(parts)
            )
        if role in self._index:
            self._index[role].forget(name)
        for peer in self._roles:
            mailbox.send(peer, Lost(name))
        self._seek(name)
        for job, under in parts:
            match role:
                case Role.CLIENT:
                    if self._runtime.config.guards(Defect.CLIENT_CANCEL):
                        self._stop(job, under)
                case Role.RELAY:
                    main = "" if under.main_lost else under.route.decode or ""
                    mailbox.send(under.client, Orphaned(job, main))
                case Role.DECODE if under.route.relay in under.open:
                    under.main_lost = True
                case Role.DECODE:
                    mailbox.send(under.client, Failure(job, "decode-lost"))
                case _:
                    pass  # those who wait for its KV know what they have

    def _seek(self, name: str) -> None:
        recovers = self._runtime.config.guards(Defect.PAIR_RECOVERY)
        if recovers and name in self._book.standing:
            self._seeking.begin(name)

    def _find(self, name: str) -> None:
        """Who was lost works for nobody now, and may be chosen again."""
        if name not in self._lost:
            return
        self._seeking.end(name)
        self._lost.discard(name)
        self._book.find(name)
        self._runtime.events.emit(Kind.INSTANCE_FOUND, peer=name, role=self._roles[name].value)
        for peer in self._roles:
            if peer != name:
                self._runtime.mailbox.send(peer, Found(name))

    def _route(self, ask: Ask) -> None:
        shape, admission = self._runtime.config.shape, self._serving.admission
        full = len(self._book.under) >= admission.router_requests
        if full and self._runtime.config.guards(Defect.ADMISSION_CONTROL):
            self._give_up_earlier(ask.req)
            self._runtime.mailbox.send(ask.client, Failure(ask.req, "router-full"))
            return
        spans = tuple(
            Span(segment=segment, tokens=length)
            for segment, length in zip(ask.segments, ask.lengths, strict=True)
        )
        keys = tuple(block_keys(spans, shape.block_tokens))
        facts = RequestFacts(
            ask.req, sum(ask.lengths), shape.block_tokens,
            shape.block_tokens * shape.bytes_per_token, shape.fixed_bytes,
            None if ask.session == NO_SESSION else ask.session - 1,
        )  # fmt: skip
        hits = {role: index.longest(keys) for role, index in self._index.items()}
        tried = self._give_up_earlier(ask.req)
        view = self._picture.view(hits, tried, self._runtime.clock.now_ns())
        try:
            route = without_main(facts, view) or self._decider.decide(facts, view)
        except AgentError as error:
            self._runtime.mailbox.send(ask.client, Failure(ask.req, f"not-routed: {error.cause}"))
            return
        known_p = hits.get(Role.PREFILL, {}).get(route.prefill, 0)
        known_md = hits.get(Role.DECODE, {}).get(route.decode or "", 0)
        under = Under(
            route, ask.client, ask.output_tokens, facts.uncached_tokens(known_p),
            facts.wire_bytes(known_md), keys,
            {
                route.prefill: known_p, route.decode or "": known_md,
                route.relay or "": hits.get(Role.RELAY, {}).get(route.relay or "", 0),
            },
            tried | ({route.decode} if route.decode else set()),
            {name for name in (route.prefill, route.relay, route.decode, ask.client) if name},
        )  # fmt: skip
        self._runtime.events.emit(
            Kind.REQUEST_ROUTED, req=ask.req, pipeline=route.choice.pipeline.value,
            prefill=route.prefill, decode=route.decode or "", relay=route.relay or "",
            reason=route.choice.reason, prefill_hit=known_p, decode_hit=known_md,
        )  # fmt: skip
        self._book.open(ask.req, under)
        for name in (route.prefill, route.relay, route.decode):
            if name is not None:
                self._record(name, keys)
        self._tell(ask, route)

    def _give_up_earlier(self, job: int) -> frozenset[str]:
        """Ends the attempt before this one, if any; returns the MDs that were tried in vain."""
        if number_of(job) == 0:
            return frozenset()
        request = request_of(job)
        earlier = attempt_id(request, number_of(job) - 1)
        under = self._book.under.get(earlier)
        if under is not None:
            self._tried[request] = under.tried
            self._cancel(earlier)
        return self._tried.get(request, frozenset())

    def _record(self, name: str, keys: tuple[int, ...]) -> None:
        index = self._index.get(self._book.standing[name].role)
        if index is not None:
            index.record(name, keys)

    def _correct(self, name: str, under: Under, blocks: int, kept: bool) -> None:
        """An instance holds less than was believed, or will not keep what it is sent."""
        index = self._index.get(self._book.standing[name].role)
        if index is None or (kept and blocks >= under.known.get(name, 0)):
            return
        index.shorten(name, under.keys, min(blocks, len(under.keys)))
        if kept:
            index.record(name, under.keys)

    def _cancel(self, job: int) -> None:
        """The client gave up: everybody who works for it returns what it holds."""
        under = self._book.under.get(job)
        if under is not None:
            self._book.leave(job, under.client)
            if self._runtime.config.guards(Defect.CLIENT_CANCEL):
                self._stop(job, under)

    def _stop(self, job: int, under: Under) -> None:
        for name in under.instances:
            if name in under.open:
                self._runtime.mailbox.send(name, Cancel(job))

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
            send(
                relay,
                Relay(ask.req, *prompt, ask.output_tokens, decode, ask.client, route.prefill),
            )
        send(route.prefill, Assign(ask.req, *prompt, decode, relay, ask.client))

    def _note(self, sender: str, note: Note) -> None:
        under = self._book.under.get(note.req)
        if under is None:
            return
        match note.what:
            case "prefilled":
                self._book.prefilled(note.req)
            case "matched" | "unkept":
                self._correct(sender, under, note.value, note.what == "matched")
            case "transferred":
                self._picture.transferred(under, self._runtime.clock.now_ns(), note.value)
            case "served" | "relayed" | "released" | "ended":
                self._book.leave(note.req, sender)
        if note.what == "relayed" and under.main_lost and note.value < under.output_tokens:
            self._runtime.mailbox.send(under.client, Failure(note.req, "decode-lost"))


async def router_main(runtime: Runtime) -> None:
    """Entry point of a router agent."""
    if runtime.config.serving is None:
        raise AgentError("start the router", runtime.config.node, "its config has no serving part")
    await RouterAgent(runtime, runtime.config.serving).run()
