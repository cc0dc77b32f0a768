"""Asks the built lab for what the plan promised: field by field, then with packets.

Runs inside the guest, in the namespaces of the built network. It measures with raw
frames between the two endpoints of every link, never with TCP, so that a figure has
one cause. It changes nothing: a wire that is wrong stays wrong and is reported.
"""
