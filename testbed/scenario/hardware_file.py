"""Hardware profiles in files of their own, as ``testbed calibrate --model`` writes them."""

from __future__ import annotations

from pathlib import Path

from testbed.contract.agent import Hardware
from testbed.errors import ScenarioError
from testbed.scenario.document import read_document
from testbed.scenario.faults import check
from testbed.scenario.file import ScenarioFile
from testbed.scenario.profiles import HardwareFile

_ROLES = ("prefill", "near_prefill", "relay", "decode")


def is_file_name(name: str) -> bool:
    """Whether a hardware is named by the file that holds it."""
    return name.endswith(".yaml")


def read_hardware_file(path: Path) -> Hardware:
    """The one profile of a file.

    Raises:
        ScenarioError: it cannot be read, is no hardware file, or holds another number of profiles.
    """
    document = read_document(path)
    profiles = check(document, HardwareFile).profiles
    if len(profiles) != 1:
        raise ScenarioError(
            str(path), (document.fault(("profiles",), f"{len(profiles)} profiles; wanted is one"),)
        )
    ((name, profile),) = profiles.items()
    return profile.resolve(name)


def hardware_files(file: ScenarioFile) -> tuple[Path, ...]:
    """Every hardware file that a scenario names, each once."""
    chosen = [file.shape.hardware]
    if file.serving is not None:
        chosen += [getattr(file.serving.hardware, role) or "" for role in _ROLES]
    return tuple(dict.fromkeys(Path(name) for name in chosen if is_file_name(name)))


def with_absolute_files(file: ScenarioFile, here: Path) -> ScenarioFile:
    """Paths of hardware files made absolute, so that the resolved file loads anywhere."""
    shape = file.shape.model_copy(update={"hardware": _absolute(file.shape.hardware, here)})
    changed = file.model_copy(update={"shape": shape})
    if file.serving is None:
        return changed
    names: dict[str, str | None] = {role: getattr(file.serving.hardware, role) for role in _ROLES}
    hardware = file.serving.hardware.model_copy(
        update={role: name and _absolute(name, here) for role, name in names.items()}
    )
    serving = file.serving.model_copy(update={"hardware": hardware})
    return changed.model_copy(update={"serving": serving})


def _absolute(name: str, here: Path) -> str:
    return str((here / name).resolve()) if is_file_name(name) else name
