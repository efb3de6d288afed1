"""What the overview and a project's page show at a glance: allocation, waiting, failures, history.

Reads only the database, with the same few queries for any number of rows, and only what the reader
may see.
"""
