"""The API server: HTTP in, verbs of `objects` out.

Nothing here decides what an object means, and nothing here writes the store.
"""
