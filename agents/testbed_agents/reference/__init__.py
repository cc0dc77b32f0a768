"""One uninterrupted engine: what every request's tokens must be, whatever the network did.

``python -m testbed_agents.reference RUN_FOLDER [--processes N] [--weights FILE]`` reads
plan.json and workload.jsonl and writes reference.jsonl, a line a request::

    {"req": 7, "tokens": [411, 9], "gaps": [0.83, 1.9]}

and ``"text"`` where the model has words. It runs in processes of its own, knows of no
transfer and no handoff, and takes each prompt in one pass up to its last token, where
a decode agent restores blocks and feeds the last token again. The plan names the
weights as agents see them, inside the guest; here they come from the cache.

::

    plan, workload ─▶ key ─▶ kept? ─yes──────────────────────────────▶ reference.jsonl
                              └─no─▶ shares ─▶ one engine a core ─▶ kept ─▶┘
"""

from __future__ import annotations

from testbed_agents.reference.write import write_reference

__all__ = ["write_reference"]
