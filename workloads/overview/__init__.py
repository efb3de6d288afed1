"""What the overview and a project's page tell at a glance: what there is, who holds it, what waits
and why, what failed, and how it was.

Reads the database only, the same few queries however many rows there are, and only what the reader
may see.
"""
