"""Reproduces published tables: many runs, one page, published beside measured.

A reproduction passes when every run is faithful and the named qualitative findings
show. Distance to published numbers never decides.
"""
