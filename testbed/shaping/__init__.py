"""From what a link should be to what the kernel is told: compiler, wire format, offline model.

Nothing here touches a machine. The compiler turns one direction of a link into
stages; the ``netlink_*`` modules turn stages into the bytes of TCA_OPTIONS and back;
``netem_model`` predicts what the kernel's seeded generator will do with every packet::

    LinkSpec ──compile──▶ StagePair ──encode──▶ bytes ──kernel──▶ bytes ──decode──▶ StagePair?
"""
