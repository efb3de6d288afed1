"""The kubelet: runs pods as process trees of this machine.

`supervisor` and what it imports outlive the server; the rest belongs to the server.
"""
