"""The only room that talks to Kubernetes. It knows no Django and no workload: dictionaries or the
caller's own structs in and out.
"""
