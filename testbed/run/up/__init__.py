"""A run of containers that are on their own: plain ``docker compose up`` (decision 7).

::

    planner ── makes the run folder, plans, notes it ──▶ wires, routers, agents, client start
    wires, routers: set up ─ built ─▶ client: measure, wire after wire ─▶ client: load
    agents: load ─ ready ─▶ client: barrier
    agents work, wires sample ─ clients ended ─▶ client: stop ─▶ ended ─▶ record, verdict

Nobody orchestrates from outside: the programs of this room meet in the run folder.
"""
