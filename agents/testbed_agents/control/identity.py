"""Which life of an agent a message is from. Pure.

An agent that was started anew at its old address is another one: it knows nothing of what was
asked of the one before. Its name on the wire bears its number, from the second life on.
"""

from __future__ import annotations

from testbed.errors import ProtocolError

_MARK = "#"


def identity(name: str, incarnation: int) -> str:
    """How ``name`` signs in its life number ``incarnation``, from 0 on."""
    return f"{name}{_MARK}{incarnation}" if incarnation else name


def read_identity(signed: str) -> tuple[str, int]:
    """(name, incarnation); raises ProtocolError for what ``identity`` cannot have made."""
    name, mark, number = signed.partition(_MARK)
    if not mark:
        return name, 0
    if not (number.isascii() and number.isdigit()) or number.startswith("0") or len(number) > 9:
        raise ProtocolError("read an identity", signed[:64], "its incarnation is not a number")
    return name, int(number)


class Lives:
    """The newest life of every peer that was heard of.

    Args:
        first: whether this agent is in its first life: so are all others, as far as it knows.
            One that was started anew takes the life in which it first hears of a peer as given.
    """

    def __init__(self, first: bool = True) -> None:
        self._first = first
        self._newest: dict[str, int] = {}

    def hear(self, name: str, incarnation: int) -> bool | None:
        """Whether a new life begins with this message; None where it is from one that is over."""
        known = self._newest.get(name, 0 if self._first else incarnation)
        if incarnation < known:
            return None
        self._newest[name] = incarnation
        return incarnation > known
