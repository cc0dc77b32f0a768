"""``extends:`` lays one scenario over another and keeps the line of every key."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import ScenarioError
from testbed.scenario import load_scenario
from testbed.scenario.document import KeyPath, Plain
from testbed.scenario.extend import laid_over

pytestmark = pytest.mark.unit

BASE = """\
name: base
description: "below"
assumptions: ["one"]
topology: {name: two-dc, parameters: {router: 1, relay: 1}}
window: {measure: 2 s, drain: 10 s}
workload:
  arrivals: {kind: even, every: 250 ms}
  input: {kind: fixed, tokens: 4096 tokens}
  hit: {kind: uniform, low: 50 %, high: 90 %}
  output: {kind: fixed, tokens: 8 tokens}
shape: {kv: deepseek-v4-pro, precision: fp8-fp4-indexer, hardware: demo-cpu}
model: {name: nano}
serving:
  pipeline: {kind: hit-threshold, threshold: 60 %}
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base.yaml"
    path.write_text(BASE)
    return path


def above(base: Path, text: str, name: str = "above") -> str:
    path = base.with_name(f"{name}.yaml")
    path.write_text(f'name: {name}\nextends: base\ndescription: "above"\n{text}')
    return str(path)


def faults_of(path: str, *settings: str) -> tuple[str, ...]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, settings)
    return caught.value.faults


def test_what_is_not_said_is_taken_over(base: Path) -> None:
    path = above(base, "window: {measure: 3 s}\nassumptions: [two]\n")
    file = load_scenario(path).file
    lower = load_scenario(str(base)).file
    assert (file.name, file.description) == ("above", "above")
    assert file.window.measure.seconds == 3
    assert file.window.drain == lower.window.drain
    assert file.assumptions == ("one", "two")
    assert (file.workload, file.shape, file.serving) == (
        lower.workload, lower.shape, lower.serving
    )  # fmt: skip


def test_another_kind_replaces_the_mapping_and_the_same_kind_mixes(base: Path) -> None:
    other = above(base, "serving: {pipeline: {kind: direct}}\nworkload: {hit: {low: 60 %}}\n")
    file = load_scenario(other).file
    assert file.serving is not None
    assert file.serving.pipeline.kind == "direct"
    assert (str(file.workload.hit.low), str(file.workload.hit.high)) == ("60 %", "90 %")


def test_null_takes_a_key_away(base: Path) -> None:
    text = "serving: null\ntopology: {parameters: {router: null, relay: null}}\n"
    scenario = load_scenario(above(base, text))
    assert scenario.file.serving is None
    assert scenario.file.topology.parameters == {}


def test_a_fault_names_the_file_and_line_of_its_key(base: Path) -> None:
    path = above(base, "workload:\n  output: {tokens: 0 tokens}\nshape: {kv: nothing}\n")
    base.write_text(BASE.replace("demo-cpu", "demo-gpu").replace("60 %", "160 %"))
    faults = faults_of(path)
    assert any(fault.startswith(f"{path}:6: shape.kv: unknown name") for fault in faults)
    assert any(fault.startswith(f"{base}:11: shape.hardware: unknown name") for fault in faults)
    assert any(fault.startswith(f"{base}:14: serving.pipeline.threshold") for fault in faults)


def test_settings_go_over_both_files(base: Path) -> None:
    path = above(base, "window: {measure: 3 s}\n")
    settings = ("window.measure=4 s", "workload.output.tokens=9 tokens")
    file = load_scenario(path, settings).file
    assert file.window.measure.seconds == 4
    assert file.workload.longest_output == 9
    assert "unknown key" in faults_of(path, "extends=pdd-hello")[0]


def test_circles_and_unknown_names_are_refused(base: Path) -> None:
    path = above(base, "")
    base.write_text("extends: above\n" + BASE)
    assert faults_of(path) == (f"{base}:1: extends: leads in a circle; extend a scenario that "
                               "stands alone",)  # fmt: skip
    base.write_text("extends: pdd-helo\n" + BASE)
    assert "did you mean 'pdd-hello'?" in faults_of(path)[0]
    base.write_text("extends: [pdd-hello]\n" + BASE)
    assert "must be the name of a scenario" in faults_of(path)[0]
    base.write_text("extends: ../base\n" + BASE)
    assert "unknown name '../base'" in faults_of(path)[0]


def test_both_files_are_inputs_of_the_run(base: Path) -> None:
    middle = above(base, "", "middle")
    upper = above(base, "", "upper")
    Path(upper).write_text(Path(upper).read_text().replace("extends: base", "extends: middle"))
    read = [one.path for one in load_scenario(upper).inputs][:3]
    assert read == [upper, str(base), middle]


KEYS = st.sampled_from(["a", "b", "kind"])
TREES = st.recursive(
    st.integers(0, 3) | st.none(),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, TREES, max_size=3), st.dictionaries(KEYS, TREES, max_size=3))
def test_every_key_has_a_place_and_what_was_said_last_holds(
    lower: dict[str, Plain], upper: dict[str, Plain]
) -> None:
    places = spots(lower, "low")
    merged = laid_over(lower, upper, (), places, spots(upper, "up"))
    assert set(places) == set(spots(merged, ""))
    for path, value in leaves(upper):
        if value is not None:
            assert at(merged, path) == value
            assert places[path] == "up"
    for path, value in leaves(merged):
        source = {"up": upper, "low": lower}[places[path]]
        assert at(source, path) == value


def spots(tree: Plain, name: str, path: KeyPath = ()) -> dict[KeyPath, str]:
    found = {path: name} if path else {}
    if isinstance(tree, dict):
        for key, value in tree.items():
            found |= spots(value, name, (*path, key))
    return found


def leaves(tree: Plain, path: KeyPath = ()) -> list[tuple[KeyPath, Plain]]:
    if not isinstance(tree, dict):
        return [(path, tree)]
    return [leaf for key, value in tree.items() for leaf in leaves(value, (*path, key))]


def at(tree: Plain, path: KeyPath) -> Plain:
    for key in path:
        tree = tree.get(str(key)) if isinstance(tree, dict) else None
    return tree
