"""What relay decode did, and how its answers passed to main decode."""

from __future__ import annotations

import numpy as np

from testbed.contract.event import Kind
from testbed.contract.role import Role
from testbed.metrics.events import Events
from testbed.metrics.percentile import NS, mean, percentile
from testbed.metrics.record import Handoffs, RelayShare
from testbed.metrics.run import Flags, Run, role_codes
from testbed.metrics.serving_record import TokenIds


def handoffs(run: Run, events: Events, inside: Flags) -> Handoffs:
    """From KV verified at MD to MD's first token at the client's side of the wire.

    Eager tokens are those of RLD that MD knew of when its KV was whole; catch-up tokens
    are what RLD decoded from then on until MD took over. An answer that RLD ended has none.
    """
    if not run.agents(Role.RELAY):
        return Handoffs()
    start, end = events[Kind.HANDOFF_START], events[Kind.HANDOFF_END]
    began = dict(zip(start.req.tolist(), start.t.tolist(), strict=True))
    heard = dict(zip(start.req.tolist(), start.integers["heard"].tolist(), strict=True))
    durations: list[float] = []
    eager: list[float] = []
    catch_up: list[float] = []
    for req, t, position in zip(
        run.known(end.req).tolist(), end.t.tolist(), end.integers["position"].tolist(), strict=True
    ):
        if not inside[req] or req not in began:
            continue
        durations.append((t - began[req]) / NS)
        eager.append(float(heard[req]))
        catch_up.append(float(position - heard[req]))
    spans = np.array(durations, dtype=np.float64)
    return Handoffs(
        count=len(durations),
        p50_s=percentile(spans, 50),
        p99_s=percentile(spans, 99),
        eager_tokens_mean=mean(np.array(eager, dtype=np.float64)),
        catchup_tokens_mean=mean(np.array(catch_up, dtype=np.float64)),
    )


def relay_share(run: Run, events: Events, inside: Flags) -> RelayShare:
    """Tokens at the client that came from RLD, and what it decoded for one request."""
    if not run.agents(Role.RELAY):
        return RelayShare()
    tokens, end = events[Kind.TOKEN], events[Kind.RELAY_END]
    codes = role_codes(run, events, Role.RELAY)
    counted = inside[run.known(tokens.req)]
    total = int(counted.sum())
    relayed = int((np.isin(tokens.texts["source"], codes) & counted).sum())
    decoded = end.integers["tokens"][inside[run.known(end.req)]]
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
