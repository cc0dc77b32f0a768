"""The host's own kernel as a place for a lab: a room with namespaces of its own, gone at its end.

``room.py`` runs alone and never imports the project.
"""
