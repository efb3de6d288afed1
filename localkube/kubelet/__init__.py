"""The kubelet: pods as process trees of this machine. `supervisor` and what it imports outlive the
server; the rest is the server's.
"""
