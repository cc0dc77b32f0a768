"""The virtual clock: boots the lab kernel, runs one program inside, brings back its result.

::

    orchestrator ──pipe──▶ warden ──▶ linux (guest kernel) ──▶ init.py ──▶ program
         ▲                    │
         └──── run folder ────┘   the only writable place the guest sees

The warden outlives the orchestrator by a moment: when the pipe breaks it kills
the guest and removes its files, whatever happened to the orchestrator.
"""
