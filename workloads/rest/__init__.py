"""Submissions as bodies of the REST API, in the words of Run:ai's clients.

Structs are made from the catalogue of fields; the same structs are read, written and described.
"""
