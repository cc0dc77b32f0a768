"""Prompts with structure: which requests really share which prefixes.

Pure functions of drawn lengths and a seeded stream. Every length is a whole number of
blocks; the spans of a prompt add up to its input length. Nothing here knows how a cache
is bounded or where it stands.
"""

from testbed.workload.prefix.documents import document_prompts, whole_documents
from testbed.workload.prefix.keys import Prompt, block_keys, chained, expected_hits
from testbed.workload.prefix.sessions import SessionPrompts, session_prompts
from testbed.workload.prefix.traced import traced_prompts

__all__ = [
    "Prompt",
    "SessionPrompts",
    "block_keys",
    "chained",
    "document_prompts",
    "expected_hits",
    "session_prompts",
    "traced_prompts",
    "whole_documents",
]
