"""Continuous batching of decode: which sequences take how many tokens in the next step.

Pure: no I/O, no clock, no model. The decode agent submits, plans, runs the step on its
model and its clock, and reports it complete.
"""

from testbed_agents.batching.batch import Batch
from testbed_agents.batching.limits import Limits, limits_of
from testbed_agents.batching.sequence import Sequence
from testbed_agents.batching.step import Feed, Preempted, Step

__all__ = ["Batch", "Feed", "Limits", "Preempted", "Sequence", "Step", "limits_of"]
