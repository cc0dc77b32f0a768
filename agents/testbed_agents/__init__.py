"""Programs that run inside the lab's nodes: client, prefill and decode agents.

An agent is a black box: one config file in, events out, an exit status. It
imports only ``testbed.contract``, ``testbed.units`` and ``testbed.errors``.
"""
