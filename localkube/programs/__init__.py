"""Programs that replace what a container's image would have brought.

Each runs as a file, with the standard library alone.
"""
