"""Writes an archive of one image as ``docker save`` does, out of files of this machine."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path


def with_libraries(*programs: str) -> dict[str, Path]:
    """Path inside → file of these programs and all libraries that they are linked with."""
    files = {}
    for program in programs:
        files[program] = Path(program)
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
        for word in listed.stdout.split():
            if word.startswith("/"):
                files[word] = Path(word)
    return files


def write_archive(path: Path, name: str, files: Mapping[str, Path]) -> str:
    """Writes the archive; returns the image's id."""
    layer = path.with_suffix(".layer")
    with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as tar:
        for folder in ("tmp", "proc", "sys", "dev", "etc", "data"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for inside, file in sorted(files.items()):
            entry = tarfile.TarInfo(inside.lstrip("/"))
            entry.size, entry.mode = file.stat().st_size, 0o755
            with file.open("rb") as stream:
                tar.addfile(entry, stream)
    with layer.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64", "os": "linux", "created": "2026-01-01T00:00:00Z",
            "config": {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()  # fmt: skip
    identity = hashlib.sha256(config).hexdigest()
    manifest = [{"Config": f"{identity}.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as tar:
        for inside, content in (
            (f"{identity}.json", config),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            entry = tarfile.TarInfo(inside)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        tar.add(layer, "layer.tar")
    layer.unlink()
    return f"sha256:{identity}"
