"""Control messages: every message comes back as it was; nothing else is understood."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.contract.agent import PROTOCOL
from testbed.errors import ProtocolError
from testbed_agents.control.message import (
    MESSAGE_MAX,
    Announce,
    Failed,
    Message,
    Submit,
    Tokens,
    decode,
    encode,
)
from testbed_agents.control.plane import Lost, Orphaned, Relay, Settle
from testbed_agents.handoff.message import FirstToken, TokenIds

NUMBERS = st.integers(0, 2**62 - 1)
NAMES = st.text(max_size=40)
LISTS = st.lists(NUMBERS, max_size=20)
MESSAGES = st.one_of(
    st.builds(Submit, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NAMES, NAMES),
    st.builds(Announce, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NAMES),
    st.builds(Tokens, LISTS, LISTS, LISTS, LISTS),
    st.builds(Failed, NUMBERS, NAMES),
    st.builds(Lost, NAMES),
    st.builds(Orphaned, NUMBERS, NAMES),
    st.builds(Relay, NUMBERS, LISTS, LISTS, NUMBERS, NAMES, NAMES, NAMES),
    st.builds(Settle),
    st.builds(FirstToken, NUMBERS, NUMBERS, NAMES),
    st.builds(TokenIds, NUMBERS, NUMBERS, LISTS.map(tuple), st.booleans(), NUMBERS),
)


@given(sender=st.text(max_size=40), message=MESSAGES)
def test_a_message_comes_back_as_it_was(sender: str, message: Message) -> None:
    assert decode(encode(sender, message)) == (sender, message)


@given(data=st.binary(max_size=200))
def test_any_other_bytes_are_refused_or_are_a_message(data: bytes) -> None:
    try:
        sender, message = decode(data)
    except ProtocolError:
        return
    assert decode(encode(sender, message)) == (sender, message)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([PROTOCOL + 1, 3, "p1", 1, "x"], "protocol"),
        ([PROTOCOL, 99, "p1", 1, "x"], "unknown kind"),
        ([PROTOCOL, True, "p1", 1, "x"], "unknown kind"),
        ([PROTOCOL, 3, "p1", 1], "fields"),
        ([PROTOCOL, 3, "p1", "1", "x"], "req is not int"),
        ([PROTOCOL, 3, "p1", -1, "x"], "req is not int"),
        ([PROTOCOL, 3, "p1", 2**63, "x"], "req is not int"),
        ([PROTOCOL, 3, "p1", 1, "x" * 600], "reason is not str"),
        ([PROTOCOL, 2, "p1", [1], [1], [1], ["1"]], "last is not"),
        ([PROTOCOL, 3, 7, 1, "x"], "sender"),
        ([], "not a message"),
        ({"a": 1}, "not a message"),
    ],
)
def test_nonsense_is_refused_with_its_reason(parts: object, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode(msgpack.packb(parts))


def test_a_message_too_large_to_send_is_refused_by_the_sender() -> None:
    many = [2**60] * (MESSAGE_MAX // 9)
    with pytest.raises(ProtocolError, match="exceeds"):
        encode("md1", Tokens(many, [], [], []))
