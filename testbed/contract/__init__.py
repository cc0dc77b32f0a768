"""What the orchestrator and the agents agree on: files, events, barriers, roles.

This is the only room that both packages import. It holds frozen values, no I/O
beyond the event file, and imports nothing heavy.
"""
