"""Walks a plan through a lab: folder, provenance, guest, analysis, verdict."""
