"""Which handoff a request gets, by the load of its RLD, and how far ahead it is set. Pure."""

from __future__ import annotations

from testbed.contract.handoff import HandoffConfig, HandoffMode, Occupancy


class HandoffChoice:
    """The choice for all requests of one RLD.

    Between the two marks ``dynamic`` stays with what it chose last, so that a load that
    trembles around one mark does not make it flutter.
    """

    def __init__(self, config: HandoffConfig) -> None:
        self._config = config
        self._pressed = False

    def choose(self, load: float) -> HandoffMode:
        """The mode at this load (share of RLD's capacity, 0..1); never ``dynamic``."""
        if self._config.mode is not HandoffMode.DYNAMIC:
            return self._config.mode
        if load >= self._config.upper:
            self._pressed = True
        elif load <= self._config.lower:
            self._pressed = False
        return HandoffMode.ONE_SHOT if self._pressed else HandoffMode.CATCH_UP


class Choices:
    """One choice for each RLD."""

    def __init__(self, config: HandoffConfig) -> None:
        self._config = config
        self._choices: dict[str, HandoffChoice] = {}

    def choose(self, relay: str, load: float) -> HandoffMode:
        """The mode of a handoff from ``relay``, which has this load; catch-up without one."""
        if not relay:
            return HandoffMode.CATCH_UP
        return self._choices.setdefault(relay, HandoffChoice(self._config)).choose(load)


def cap_tokens(occupancy: Occupancy, load: float) -> int:
    """Most tokens that RLD decodes for one request at this load."""
    beyond = min(max(load - occupancy.easy, 0.0) / (1 - occupancy.easy), 1.0)
    spare = occupancy.most_tokens - occupancy.least_tokens
    return occupancy.most_tokens - round(beyond * spare)


def whole(tokens: int) -> Occupancy:
    """No bound: without MD an answer of at most ``tokens`` tokens is RLD's to its end."""
    return Occupancy(most_tokens=tokens, least_tokens=tokens, hold_ns=1 << 62)


def lead_tokens(rtt_ns: int, step_ns: int) -> int:
    """How far ahead MD sets the takeover: what RLD makes until MD has its answer, and one.

    RLD's newest token is half a round trip old when MD sees it, and the takeover needs
    as long back. With this lead RLD learns of the takeover before it is there, and its
    word reaches MD before MD needs it, so that neither waits.

    Raises:
        ValueError: no time passes in a step.
    """
    if step_ns <= 0 or rtt_ns < 0:
        raise ValueError("needs step_ns > 0 and rtt_ns >= 0")
    return -(-rtt_ns // step_ns) + 1
