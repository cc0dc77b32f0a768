"""The Mininet lab: nodes are Mininet nodes, links are wires built by netlink."""
