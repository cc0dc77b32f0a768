"""The PDD testbed: scenario file in, deterministic network lab, verdict and report out."""

__version__ = "0.1.0"
