"""Flat weights files: what was written is read; damage is named, never computed with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from testbed.contract.agent import ModelConfig
from testbed.errors import AgentError, HostError
from testbed_agents.model.convert import convert
from testbed_agents.model.engine import Engine
from testbed_agents.model.flatfile import (
    Source,
    flat_path,
    read_header,
    read_tokenizer,
    read_weights,
    write_flat,
)
from testbed_agents.model.load import load_model
from testbed_agents.model.weights import LlamaShape, tensor_shapes

SHAPE = LlamaShape(
    hidden_size=8,
    intermediate_size=12,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=4,
    vocab_size=40,
    rope_theta=1e4,
    rms_norm_eps=1e-5,
    item_bytes=4,
    tied=True,
)
SOURCE = Source(package="none", version="0", file="none.gguf", sha256="00")
TOKENIZER = b'{"not": "empty"}'


def tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = tensor_shapes(SHAPE).items()
    return {name: torch.randn(size, generator=generator) for name, size in shapes}


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.flat"
    with path.open("wb") as stream:
        write_flat(stream, "tiny", SHAPE, tensors(), TOKENIZER, SOURCE)
    return path


def test_weights_come_back_bit_for_bit(flat: Path) -> None:
    weights = read_weights(flat)
    written = tensors()
    assert weights.shape == SHAPE
    assert torch.equal(weights.layers[1].gate_up, written["layer.1.gate_up"])
    assert torch.equal(weights.norm, written["norm"])
    assert weights.head is weights.embedding
    assert read_tokenizer(flat) == TOKENIZER
    assert read_header(flat).source == SOURCE


def test_all_tensors_are_views_into_one_buffer(flat: Path) -> None:
    weights = read_weights(flat)
    buffers = {
        tensor.untyped_storage().data_ptr()
        for tensor in (weights.embedding, weights.layers[0].qkv, weights.layers[1].down)
    }
    assert len(buffers) == 1


def test_an_engine_runs_on_them(flat: Path) -> None:
    engine = Engine(read_weights(flat), seed=0, sampling="greedy")
    assert engine.score((1, 2, 3)).shape == (3, SHAPE.vocab_size)


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def damaged(data: bytes) -> bytes:
    return data[:-200] + bytes([data[-200] ^ 1]) + data[-199:]


def other_magic(data: bytes) -> bytes:
    return b"GGUF" + data[4:]


def huge_header(data: bytes) -> bytes:
    return data[:8] + b"\xff" * 8 + data[16:]


def bad_header(data: bytes) -> bytes:
    return data.replace(b'"offsets"', b'"offzets"')


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (cut, "truncated"),
        (damaged, "digest does not match"),
        (other_magic, "not a flat weights file"),
        (huge_header, "header of"),
        (bad_header, "bad header"),
        (lambda data: b"", "not a flat weights file"),
    ],
)
def test_damage_is_named_with_its_remedy(
    flat: Path, spoil: Callable[[bytes], bytes], cause: str
) -> None:
    flat.write_bytes(spoil(flat.read_bytes()))
    with pytest.raises(AgentError, match=rf"(?s){cause}.*--force"):
        read_weights(flat)


def test_a_damaged_tokenizer_is_named(flat: Path) -> None:
    flat.write_bytes(flat.read_bytes()[:-1] + b"?")
    with pytest.raises(AgentError, match="digest does not match"):
        read_tokenizer(flat)


def test_a_tensor_of_the_wrong_shape_is_not_written(tmp_path: Path) -> None:
    wrong = tensors() | {"norm": torch.ones(9)}
    with (tmp_path / "x").open("wb") as stream, pytest.raises(AgentError, match="norm"):
        write_flat(stream, "tiny", SHAPE, wrong, TOKENIZER, SOURCE)


def test_a_missing_file_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(AgentError, match=r"python -m testbed_agents\.model\.convert"):
        load_model(ModelConfig(name="smollm2-135m", seed=77))


def test_the_cache_folder_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert flat_path("smollm2-135m") == tmp_path / "pdd-testbed/models/smollm2-135m.flat"


def test_a_cache_that_is_a_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("in the way")
    with pytest.raises(HostError, match="cannot convert weights"):
        convert(tmp_path / "models" / "x.flat")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_conversion_is_done_once_and_clears_what_a_killed_one_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The reader of GGUF is replaced by a small fake; the real one takes 20 s."""
    read: list[Path] = []

    def read_small(path: Path) -> tuple[LlamaShape, dict[str, torch.Tensor], bytes]:
        read.append(path)
        return SHAPE, tensors(), TOKENIZER

    monkeypatch.setattr("testbed_agents.model.convert.read_gguf", read_small)
    target = tmp_path / "models" / "tiny.flat"
    target.parent.mkdir()
    (target.parent / ".tiny.flat.killed").write_bytes(b"half")
    assert convert(target) == convert(target) == target
    assert len(read) == 1
    assert sorted(path.name for path in target.parent.iterdir()) == ["tiny.flat", "tiny.lock"]
    target.write_bytes(b"spoilt")
    convert(target)
    assert len(read) == 2
    assert read_weights(target).shape == SHAPE
