"""Disks of an Engine in the guest: sparse copies, names, programs without the counter."""

from __future__ import annotations

import os
import resource
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import HostError
from testbed.lab.compose.guestimage import Stock
from testbed.lab.compose.keylock import key_lock, key_lock_if_free
from testbed.lab.compose.sparsefile import allocated_bytes, copy_sparse
from testbed.lab.compose.steadyprogram import copy_steady, steadied

BLOCK = 65_536
COUNTER = bytes.fromhex("75100f01f948c1e2204801d04889442408c30faef00faee80f31ebe9")


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(0, 4096))
def test_a_copy_is_equal_and_as_sparse(
    tmp_path_factory: pytest.TempPathFactory, filled: list[bool], tail: int
) -> None:
    folder = tmp_path_factory.mktemp("sparse")
    source, target = folder / "source", folder / "target"
    with source.open("wb") as stream:
        for number, full in enumerate(filled):
            if full:
                stream.seek(number * BLOCK)
                stream.write(os.urandom(BLOCK))
        stream.truncate(len(filled) * BLOCK + tail)
    copy_sparse(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert allocated_bytes(target) <= allocated_bytes(source) + BLOCK


def test_a_copy_never_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"new")
    (tmp_path / "target").write_bytes(b"old")
    with pytest.raises(HostError, match="copy a disk image"):
        copy_sparse(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"old"


def test_what_the_disk_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(bytes(BLOCK))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (BLOCK // 2, limits[1]))
    try:
        with pytest.raises(HostError, match="File too large"):
            copy_sparse(tmp_path / "source", tmp_path / "target")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_the_name_of_a_disk_covers_images_and_programs(tmp_path: Path) -> None:
    program = tmp_path / "dockerd"
    program.write_bytes(b"one")
    programs = {"dockerd": program}
    stock = Stock((("a:1", "sha256:1"), ("b:1", "sha256:2")))
    name = stock.digest(programs)
    assert Stock(stock.images[::-1]).digest(programs) == name
    assert Stock((("a:1", "sha256:2"), ("b:1", "sha256:1"))).digest(programs) != name
    assert Stock(stock.images[:1]).digest(programs) != name
    program.write_bytes(b"two")
    assert stock.digest(programs) != name


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_only_the_counter_is_taken_out(before: bytes, after: bytes) -> None:
    code = steadied(before + COUNTER + after)
    assert code is not None
    assert len(code) == len(before + COUNTER + after)
    assert code.startswith(before)
    assert code.endswith(after)
    assert bytes.fromhex("0f01f9") not in code[len(before) : len(before) + len(COUNTER)]
    assert bytes.fromhex("0f31") not in code[len(before) : len(before) + len(COUNTER)]


def test_go_code_runs_on_one_thread() -> None:
    code = steadied(COUNTER + b"ncLinkage(GOMAXPROCS=4I/O GOMAXPROCS=1")
    assert code is not None
    assert code.endswith(b"ncLinkage(GOMAXPROCS=1I/O GOMAXPROCS=1")


def test_a_program_that_reads_the_counter_otherwise_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "program"
    source.write_bytes(b"\x0f\x31 some other program")
    with pytest.raises(HostError, match="counter"):
        copy_steady(source, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_lock_holds_for_its_key_only(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with key_lock(file, "0a" * 12):
        with key_lock_if_free(file, "0a" * 12) as free:
            assert not free
        with key_lock_if_free(file, "0b" * 12) as free:
            assert free
    with key_lock_if_free(file, "0a" * 12) as free:
        assert free


def test_who_comes_second_waits_and_says_so(tmp_path: Path) -> None:
    file, key = tmp_path / "lock", "0a" * 12
    order: list[str] = []
    asked = threading.Event()

    def second() -> None:
        with key_lock(file, key, asked.set):
            order.append("second")

    with key_lock(file, key):
        thread = threading.Thread(target=second)
        thread.start()
        assert asked.wait(10)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
