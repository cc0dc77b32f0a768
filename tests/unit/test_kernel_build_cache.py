"""The kernel cache: whole kernels are found, half ones never; one build at a time."""

from __future__ import annotations

import fcntl
import hashlib
import json
import threading
from pathlib import Path

import pytest

from testbed.lab.guest.kernel.cache import (
    build_lock,
    cache_root,
    kernel_key,
    kernel_path,
    kernels_folder,
    select,
)
from testbed.lab.guest.kernel.progress import silent


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def put_kernel(key: str, content: bytes = b"kernel") -> Path:
    folder = kernels_folder() / key
    folder.mkdir(parents=True)
    (folder / "linux").write_bytes(content)
    (folder / "entropy.so").write_bytes(b"so")
    (folder / "config").write_text("CONFIG_NET=y\n")
    digest = hashlib.sha256(content).hexdigest()
    (folder / "build.json").write_text(json.dumps({"linux_sha256": digest}))
    return folder


def test_the_cache_obeys_xdg_cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_root() == tmp_path / "pdd-testbed"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/paths/are/ignored")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_root() == tmp_path / "home" / ".cache" / "pdd-testbed"


def test_nothing_is_found_before_a_build_and_looking_makes_nothing(tmp_path: Path) -> None:
    assert kernel_path() is None
    assert list(tmp_path.iterdir()) == []


def test_the_kernel_selected_last_is_the_one_that_runs_use() -> None:
    first, second = put_kernel("a" * 16), put_kernel("b" * 16)
    select(first)
    select(second)
    assert kernel_path() == second / "linux"
    select(first)
    assert kernel_path() == first / "linux"


def test_a_kernel_that_changed_after_its_build_is_not_used() -> None:
    folder = put_kernel("a" * 16)
    select(folder)
    (folder / "linux").write_bytes(b"kernex")
    assert kernel_path() is None


@pytest.mark.parametrize("name", ["linux", "entropy.so", "config", "build.json"])
def test_a_kernel_with_a_missing_file_is_not_used(name: str) -> None:
    folder = put_kernel("a" * 16)
    select(folder)
    (folder / name).unlink()
    assert kernel_path() is None


def test_keys_differ_by_source() -> None:
    assert kernel_key("one") == kernel_key("one") != kernel_key("two")


def test_a_second_build_says_that_it_waits_and_then_goes_on() -> None:
    kernels_folder().mkdir(parents=True)
    told = threading.Event()
    entered = threading.Event()

    def progress(step: str, share: float, /) -> None:
        if "waiting" in step:
            told.set()

    def second() -> None:
        with build_lock(progress):
            entered.set()

    with (kernels_folder() / "lock").open("a") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(10)
        assert not entered.is_set()
    thread.join(10)
    assert entered.is_set()


def test_the_lock_is_free_again_after_a_failure() -> None:
    with pytest.raises(RuntimeError), build_lock(silent):
        raise RuntimeError
    with build_lock(silent):
        pass
