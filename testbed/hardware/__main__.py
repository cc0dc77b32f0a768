"""Prints the profiles of the paper's deployment as ``profiles/hardware.yaml`` holds them."""

from __future__ import annotations

from testbed.hardware.render import yaml_lines
from testbed.hardware.shipped import shipped

if __name__ == "__main__":
    for one in shipped():
        print("\n".join(yaml_lines(one)))
