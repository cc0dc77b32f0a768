"""The router's book: whatever the order of words and losses, nothing stays behind."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.contract.role import Role
from testbed_agents.router.alone import without_main
from testbed_agents.router.book import Book, Standing, Under
from testbed_agents.router.decide import Route
from testbed_agents.router.pipeline import Pipeline, PipelineChoice
from testbed_agents.router.reach import Reach
from testbed_agents.router.view import ClusterView, InstanceView, RequestFacts

ROLES = {"p1": Role.PREFILL, "p2": Role.PREFILL, "r1": Role.RELAY, "md1": Role.DECODE}


def a_book() -> Book:
    return Book({name: Standing(role, "a", 4) for name, role in ROLES.items()})


def a_job(job: int, prefill: str, relay: str | None, decode: str | None) -> Under:
    choice = PipelineChoice(Pipeline.P_RLD_MD, "made up", "")
    route = Route(job, prefill, relay, decode, choice, Reach.ANY, "", "")
    names = {prefill, relay, decode, "c1"} - {None}
    return Under(
        route, "c1", 8, 100 + job, 10, (), {}, frozenset(), {name for name in names if name}
    )


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["open", "prefilled", "leave", "leave", "leave", "lose"]),
        st.integers(0, 7),
        st.sampled_from([*ROLES, "c1"]),
    ),
    max_size=60,
)


@given(acts=ACTS)
@settings(max_examples=200, deadline=None)
def test_nothing_stays_behind(acts: list[tuple[str, int, str]]) -> None:
    book, opened, lost = a_book(), set[int](), set[str]()
    for act, job, name in acts:
        if act == "open" and job not in opened and not lost:
            opened.add(job)
            relay = "r1" if job % 2 else None
            book.open(job, a_job(job, f"p{1 + job % 2}", relay, "md1" if job % 3 else None))
        elif act == "prefilled" and job in book.under:
            book.prefilled(job)
        elif act == "leave":
            book.leave(job, name)
        elif act == "lose":
            lost.add(name)
            assert all(name not in one.open for _, one in book.lose(name))
        for one in book.standing.values():
            assert one.queued_tokens >= 0
            assert one.active <= book.under.keys()
    for job in opened:
        for name in (*ROLES, "c1"):
            book.leave(job, name)
    assert not book.under
    assert not book.works_for("c1")
    assert all(one.queued_tokens == 0 and not one.active for one in book.standing.values())


def test_a_lost_instance_is_not_among_the_living() -> None:
    book = a_book()
    book.open(3, a_job(3, "p2", "r1", None))
    parts = book.lose("p2")
    assert [job for job, _ in parts] == [3]
    assert [name for name, _ in book.living(Role.PREFILL)] == ["p1"]
    assert book.standing["p2"].queued_tokens == 0
    assert book.under[3].open == {"r1", "c1"}


def test_what_still_waits_for_p_takes_no_room_in_a_batch() -> None:
    book = a_book()
    book.open(3, a_job(3, "p2", "r1", "md1"))
    assert [(len(book.standing[n].active), len(book.standing[n].begun)) for n in ("r1", "md1")] == [
        (1, 0), (1, 0),
    ]  # fmt: skip
    book.leave(3, "r1")
    book.prefilled(3)
    book.prefilled(3)
    assert (book.standing["r1"].begun, book.standing["md1"].begun) == (set(), {3})
    book.leave(3, "md1")
    assert book.standing["md1"].begun == set()


def view(*names: str, full: bool = False) -> ClusterView:
    def of(role: Role) -> tuple[InstanceView, ...]:
        return tuple(
            InstanceView(name, role, "a", most_sequences=1, begun_sequences=int(full))
            for name in names
            if ROLES[name] is role
        )

    return ClusterView(0, of(Role.PREFILL), of(Role.RELAY), of(Role.DECODE))


def test_without_any_main_relay_answers_alone_if_it_has_room() -> None:
    facts = RequestFacts(0, 256, 128, 1000)
    route = without_main(facts, view("p1", "r1"))
    assert route is not None
    assert (route.prefill, route.relay, route.decode) == ("p1", "r1", None)
    assert without_main(facts, view("p1", "r1", full=True)) is None
    assert without_main(facts, view("p1")) is None
    assert without_main(facts, view("p1", "r1", "md1")) is None
