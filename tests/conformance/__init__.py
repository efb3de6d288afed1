"""What Muster needs of any Kubernetes API: one suite for the embedded cluster and for a real API
server.
"""
