"""What a plan says of itself names the serving plane, the level asked of it, and its cost."""

from __future__ import annotations

from testbed.run.prepare import prepare

SHORT = ("window={measure: 1 s, drain: 1 s}",)


def said(scenario: str, *overrides: str) -> dict[str, str]:
    return dict(prepare(scenario, (*SHORT, *overrides)).plan.summary)


def test_the_serving_plane_is_told_with_its_settings() -> None:
    rows = said("pdd-paper", "serving.pipeline.threshold=80 %", "serving.handoff.mode=one-shot")
    assert rows["pipeline"] == "hit-threshold, threshold 80 %"
    assert rows["handoff"].startswith("one-shot; RLD keeps 1024 tokens for 60 s")
    assert rows["hardware by role"] == "P h100-p, RLD h100-rld, MD h200-md"
    assert rows["service level"] == "first token within 10 s, 50 ms a token, for 90 %"
    assert rows["cost"].startswith("83.32 (prefill 40 x h100, relay 3 x h100, decode 32 x h200)")


def test_nested_choices_are_told_whole() -> None:
    assert "pipeline (wan-time, bound 200 ms)" in said("prfaas-pdd")["pipeline"]


def test_what_is_not_there_is_not_told() -> None:
    assert "cost" not in said("pdd-hello")
    assert not {"pipeline", "service level", "cost"} & said("hello").keys()
