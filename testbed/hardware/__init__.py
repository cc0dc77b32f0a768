"""Where hardware profiles come from: chips, model costs and a roofline. Pure.

::

    chip × nodes ─┐
    model cost  ──┼─▶ roofline ─▶ compile ─▶ contract.agent.Hardware ─▶ profiles/hardware.yaml
    efficiencies ─┘        ▲
         anchors of the paper (calibration)

Nothing at run time reads this room: agents get the compiled figures. ``python -m
testbed.hardware`` prints the profiles again; docs/hardware.md explains them.
It never measures anything and never touches the machine.
"""
