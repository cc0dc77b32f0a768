"""What relay decode did, and how its answers passed to main decode."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import Events
from testbed.metrics.outcome import completed
from testbed.metrics.percentile import NS, Samples, mean, percentile
from testbed.metrics.record import Handoffs, RelayShare
from testbed.metrics.run import Flags, Run, role_codes
from testbed.metrics.serving_record import TokenIds


def handed_over(run: Run, events: Events, inside: Flags) -> dict[int, tuple[int, int]]:
    """When and at which position MD went on with each answer that RLD had begun."""
    end = events[Kind.HANDOFF_END]
    columns = (run.known(end.req), end.t, end.integers["position"])
    return {
        req: (t, position)
        for req, t, position in zip(*(column.tolist() for column in columns), strict=True)
        if inside[req] and position > run.first_own
    }


def handoffs(run: Run, events: Events, inside: Flags) -> Handoffs:
    """From the prompt's KV on MD's device to MD's first token, as MD sends it.

    The device has it some time after it was verified: it was admitted and copied in first.
    Eager tokens are those of RLD that MD knew of by then; catch-up tokens
    are what RLD decoded from then on until MD took over. Position 0 is none of them where P
    emits it. An answer that RLD ended, or never began, has no handoff.
    """
    if not run.agents(Role.RELAY):
        return Handoffs()
    start = events[Kind.HANDOFF_START]
    heard = start.integers["heard"].tolist()
    began = dict(zip(start.req.tolist(), zip(start.t.tolist(), heard, strict=True), strict=True))
    taken = handed_over(run, events, inside)
    durations: list[float] = []
    eager: list[float] = []
    catch_up: list[float] = []
    for req, (t, position) in taken.items():
        if req not in began:
            continue
        since, known = began[req][0], max(began[req][1], run.first_own)
        durations.append((t - since) / NS)
        eager.append(float(known - run.first_own))
        catch_up.append(float(position - known))
    spans, gaps = np.array(durations, dtype=np.float64), _gaps_s(run, events, taken)
    ended = set(events[Kind.HANDOFF_END].req.tolist())
    return Handoffs(
        count=len(durations),
        p50_s=percentile(spans, 50),
        p99_s=percentile(spans, 99),
        gap_p50_s=percentile(gaps, 50),
        gap_p99_s=percentile(gaps, 99),
        gap_max_s=percentile(gaps, 100),
        eager_tokens_mean=mean(np.array(eager, dtype=np.float64)),
        catchup_tokens_mean=mean(np.array(catch_up, dtype=np.float64)),
        empty=sum(1 for req in ended if inside[req] and req not in taken),
        ended_at_rld=_ended_at_rld(run, events, inside, ended),
    )


def _gaps_s(run: Run, events: Events, taken: Mapping[int, object]) -> Samples:
    """Last token of RLD to first one of MD at the client, for each answer with both."""
    token = events[Kind.TOKEN]
    relayed = np.isin(token.texts["source"], role_codes(run, events, Role.RELAY))
    main = np.isin(token.texts["source"], role_codes(run, events, Role.DECODE))
    last = dict(zip(token.req[relayed].tolist(), token.t[relayed].tolist(), strict=True))
    first = dict(zip(token.req[main][::-1].tolist(), token.t[main][::-1].tolist(), strict=True))
    gaps = [(first[req] - last[req]) / NS for req in taken if req in first and req in last]
    return np.array(gaps, dtype=np.float64)


def _ended_at_rld(run: Run, events: Events, inside: Flags, handed: set[int]) -> int:
    """Completed answers that had an MD and never passed to it."""
    token, routed = events[Kind.TOKEN], events[Kind.REQUEST_ROUTED]
    relayed = np.isin(token.texts["source"], role_codes(run, events, Role.RELAY))
    main = np.isin(routed.texts["decode"], role_codes(run, events, Role.DECODE))
    begun = set(token.req[relayed].tolist()) & set(routed.req[main].tolist())
    done = completed(run, events)
    return sum(1 for req in begun - handed if inside[req] and done[req])


def relay_share(run: Run, events: Events, inside: Flags) -> RelayShare:
    """Tokens at the client that came from RLD, and what it decoded itself for one request."""
    if not run.agents(Role.RELAY):
        return RelayShare()
    tokens, end = events[Kind.TOKEN], events[Kind.RELAY_END]
    codes = role_codes(run, events, Role.RELAY)
    counted = inside[run.known(tokens.req)]
    total = int(counted.sum())
    relayed = int((np.isin(tokens.texts["source"], codes) & counted).sum())
    decoded = end.integers["tokens"][inside[run.known(end.req)]] - run.first_own
    decoded = np.maximum(decoded, 0)  # one that never began says 0
    return RelayShare(
        token_share=relayed / total if total else None,
        output_tokens_mean=mean(decoded.astype(np.float64)),
    )


def token_ids(run: Run, events: Events, inside: Flags) -> TokenIds | None:
    """What RLD told MD of the window's requests; None without RLD."""
    if not run.agents(Role.RELAY):
        return None
    end = events[Kind.RELAY_END]
    told = inside[run.known(end.req)] & (end.integers["ids"] > 0)
    sizes = end.size[told]
    tokens = int(end.integers["ids"][told].sum())
    return TokenIds(
        requests=int(told.sum()),
        tokens=tokens,
        bytes=int(sizes.sum()),
        bytes_per_token=int(sizes.sum()) / tokens if tokens else None,
        request_p50_bytes=percentile(sizes.astype(np.float64), 50),
        request_p99_bytes=percentile(sizes.astype(np.float64), 99),
    )
