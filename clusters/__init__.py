"""Where workloads run: the clusters a console knows, their nodes, and the room that talks to
them.
"""
