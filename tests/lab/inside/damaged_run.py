"""Runs in the guest: the lab program, whose agents are forked from a damaging zygote."""

from __future__ import annotations

import os
import sys

from testbed.run.inside import main

if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(("/mnt/run/damage", os.environ["PYTHONPATH"]))
    sys.exit(main("/mnt/run"))
