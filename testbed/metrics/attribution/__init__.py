"""Why requests waited: from a delay at the client down to a leg, a loss, a fault.

::

    late ──▶ waits (milestones, backward) ──▶ pieces (faults, loss, others, size) ──▶ chain
              what was waited for              what explains each moment of it

Evidence only: each link of a chain is an interval of the record that overlaps the delay by a
stated share, and what nothing explains is ``unexplained_s``. Pure; reads no file.
"""

from testbed.metrics.attribution.attribute import Attribution, attribute

__all__ = ["Attribution", "attribute"]
