"""The only package that talks to Kubernetes. It knows neither Django nor workloads: it takes and
returns dictionaries or the caller's own structs.
"""
