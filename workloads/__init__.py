"""The product: workloads from what was asked for, over what the cluster makes of it, to what a
person sees.
"""
