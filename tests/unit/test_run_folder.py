"""Run folders: made once, never reused, and two starts in one second both get one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.run.folder import make_default_folder, make_folder, write_json


def test_a_folder_is_made_with_its_parts(tmp_path: Path) -> None:
    made = make_folder(tmp_path / "deep" / "run")
    assert sorted(path.name for path in made.iterdir()) == ["events", "logs"]


def test_an_occupied_place_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("kept")
    with pytest.raises(UsageError, match="never reused"):
        make_folder(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]


@pytest.mark.parametrize("place", ["file/run", "file"])
def test_a_place_below_or_at_a_file_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file"):
        make_folder(tmp_path / place)


def test_a_path_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="UTF-8"):
        make_folder(tmp_path / "b\udcff")


def test_many_starts_in_one_second_all_get_a_folder_of_their_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: make_default_folder("hello", 1, tmp_path), range(40)))
    assert len(set(made)) == 40
    assert all((path / "events").is_dir() for path in made)


def test_json_is_written_whole(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": [1, 2]})
    write_json(tmp_path / "a.json", {"b": [3]})
    assert (tmp_path / "a.json").read_text() == '{\n "b": [\n  3\n ]\n}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
