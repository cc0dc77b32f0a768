"""A model that cannot be measured here: one message, and the status of an unable machine."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from testbed.errors import ExitStatus, HostError
from testbed.run.calibrate_model import calibrate_model


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_this_machine_is_unable_and_says_so_once(tmp_path: Path) -> None:
    out = tmp_path / "gpu.yaml"
    with pytest.raises(HostError) as raised:
        calibrate_model("nano", "cuda", out)
    assert raised.value.exit_status is ExitStatus.UNABLE
    assert str(raised.value) == (
        "cannot calibrate the model: nano on cuda: cuda: torch sees no CUDA device here\n"
        "  remedy: take --device cpu, or a machine with a GPU and a CUDA build of torch"
    )
    assert not out.exists()
