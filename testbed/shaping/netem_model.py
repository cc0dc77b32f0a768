"""Offline model of netem's seeded generator: the fate of every packet, before it is sent.

The kernel draws from one stream per qdisc, in the order of the enqueue path
(net/sched/sch_netem.c, 6.12): duplication, loss, corruption, delay. A duplicate walks
the same path (without its own duplication) before the original draws its delay. Which
draws happen at all depends on what is configured, so the model follows every branch.
Not modelled, and refused: correlations (their state starts from entropy) and gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from testbed.errors import PlanError
from testbed.shaping.distribution import SCALE
from testbed.shaping.qdisc import GeModel, GiModel, Netem

_M = 0xFFFFFFFF


class Tausworthe:
    """taus113 as seeded by prandom_seed_state() and drawn by prandom_u32_state()."""

    def __init__(self, seed: int) -> None:
        i = ((seed >> 32) ^ (seed << 10) ^ seed) & _M
        self._s = tuple(i + floor if i < floor else i for floor in (2, 8, 16, 128))

    def draw(self) -> int:
        """The next 32-bit number."""
        a, b, c, d = self._s
        a = (((a & 4294967294) << 18) ^ ((((a << 6) & _M) ^ a) >> 13)) & _M
        b = (((b & 4294967288) << 2) ^ ((((b << 2) & _M) ^ b) >> 27)) & _M
        c = (((c & 4294967280) << 7) ^ ((((c << 13) & _M) ^ c) >> 21)) & _M
        d = (((d & 4294967168) << 13) ^ ((((d << 3) & _M) ^ d) >> 12)) & _M
        self._s = (a, b, c, d)
        return a ^ b ^ c ^ d


@dataclass(frozen=True, slots=True)
class Fate:
    """What leaves for one packet sent: one delay (ns) per copy, the original's last.

    ``corrupted`` says that at least one copy has a flipped bit (which one, nobody knows).
    """

    delays_ns: tuple[int, ...]
    corrupted: bool = False

    @property
    def lost(self) -> bool:
        """Nothing leaves."""
        return not self.delays_ns


class _State(IntEnum):
    """The four states of NETEM_LOSS_GI; Gilbert-Elliott uses the first two as good and bad."""

    GAP_SENT = 1
    BURST_SENT = 2
    GAP_LOST = 3
    BURST_LOST = 4


class NetemModel:
    """One netem qdisc from the moment it was (re)configured with its seed."""

    def __init__(self, spec: Netem) -> None:
        if spec.gap or any(
            (
                spec.delay_correlation,
                spec.loss_correlation,
                spec.duplicate_correlation,
                spec.corrupt_correlation,
            )
        ):
            raise PlanError("predict netem", repr(spec), "correlation and gaps are not seeded")
        self.spec = spec
        self._random = Tausworthe(spec.seed)
        self._state = _State.GAP_SENT

    def next_packet(self) -> Fate:
        """The fate of the next packet (not ECN-capable) that is enqueued."""
        return self._enqueue(original=True)

    def predict(self, packets: int) -> tuple[Fate, ...]:
        """The fates of the next packets."""
        return tuple(self.next_packet() for _ in range(packets))

    def _enqueue(self, original: bool) -> Fate:
        spec, draw = self.spec, self._random.draw
        count = 1
        if spec.duplicate and original and spec.duplicate >= draw():
            count += 1
        if self._loss():
            count -= 1
        if count == 0:
            return Fate(())
        corrupted = spec.corrupt != 0 and spec.corrupt >= draw()
        copy = self._enqueue(original=False) if count > 1 else Fate(())
        return Fate((*copy.delays_ns, self._delay()), corrupted or copy.corrupted)

    def _loss(self) -> bool:
        match self.spec.loss_model:
            case None:
                return self.spec.loss != 0 and self.spec.loss >= self._random.draw()
            case GiModel() as model:
                return self._four_state(model)
            case GeModel() as model:
                return self._gilbert_elliott(model)

    def _four_state(self, model: GiModel) -> bool:
        rnd = self._random.draw()
        match self._state:
            case _State.GAP_SENT:
                if rnd < model.p14:
                    self._state = _State.GAP_LOST
                    return True
                if rnd < (model.p13 + model.p14) & _M:
                    self._state = _State.BURST_LOST
                    return True
            case _State.BURST_SENT:
                if rnd < model.p23:
                    self._state = _State.BURST_LOST
                    return True
            case _State.BURST_LOST:
                if rnd < model.p32:
                    self._state = _State.BURST_SENT
                elif rnd < (model.p31 + model.p32) & _M:
                    self._state = _State.GAP_SENT
                else:
                    return True
            case _State.GAP_LOST:
                self._state = _State.GAP_SENT
        return False

    def _gilbert_elliott(self, model: GeModel) -> bool:
        draw = self._random.draw
        if self._state is _State.GAP_SENT:
            if draw() < model.p:
                self._state = _State.BURST_SENT
            return draw() < model.k1
        if draw() < model.r:
            self._state = _State.GAP_SENT
        return draw() > model.h

    def _delay(self) -> int:
        spec = self.spec
        if spec.jitter_ns == 0:
            return spec.latency_ns
        rnd = self._random.draw()
        if not spec.table:
            return rnd % (2 * spec.jitter_ns) + spec.latency_ns - spec.jitter_ns
        entry = spec.table[rnd % len(spec.table)]
        x = (spec.jitter_ns % SCALE) * entry
        x = (x + SCALE // 2) // SCALE if x >= 0 else -((SCALE // 2 - x) // SCALE)
        return x + (spec.jitter_ns // SCALE) * entry + spec.latency_ns
