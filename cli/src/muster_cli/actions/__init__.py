"""What can be done, as functions that call REST and return data.

Nothing here writes to a terminal or reads from one, so that other front ends can call the same.
"""
