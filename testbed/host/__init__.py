"""What a machine must have: set-up brings it, doctor says what is missing.

``setup`` and what it imports need nothing but the standard library, because they run
before anything is installed.
"""
