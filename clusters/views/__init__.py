"""The pages of this room: clusters with their nodes, and projects as far as making them touches a
cluster.
"""
