"""Benchmarks: scripts that print n, spread, a ratio against a stated peer, and the machine.

They measure; they never judge a build (a shared machine makes any threshold flicker).
``docs/performance.md`` says what is measured how, and keeps the figures.
"""
