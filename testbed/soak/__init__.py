"""Random fault schedules over one scenario, run one by one; what fails is made small.

::

    seed, number ──draw──▶ Schedule ──file──▶ scenario ──run──▶ Outcome ──shrink──▶ minimal scenario
                   pure              pure              execute            pure but for the runs

Holds no rule about what is right: a run is judged by its checks, like any other. Never touches a
machine but through ``testbed.run``.
"""
