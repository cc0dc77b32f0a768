"""Continuous batching of decode: which sequences take how many tokens in the next step.

Pure: no I/O, no clock, no model. The decode agent submits, plans, runs the step on its
model and its clock, and reports it complete.
"""

from testbed_agents.batching.batch import Batch, Refused
from testbed_agents.batching.limits import Limits
from testbed_agents.batching.memory import KvMemory
from testbed_agents.batching.sequence import Sequence
from testbed_agents.batching.step import Feed, Step

__all__ = ["Batch", "Feed", "KvMemory", "Limits", "Refused", "Sequence", "Step"]
