"""The only room that touches machines: guest, namespaces, Mininet, tc, processes."""
