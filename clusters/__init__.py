"""Where workloads run: the clusters that Muster knows, their nodes, and the package that talks to
them.
"""
