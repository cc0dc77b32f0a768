"""Lab ``compose``: a plan's network and agents in containers, in the guest or on a host."""
