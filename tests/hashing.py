"""How tests keep passwords: as the console does, without what makes guessing dear. Servers that
tests start keep theirs dear.
"""

from projects import hashing


class Quick(hashing.Argon2):
    time_cost = 1
    memory_cost = 8
    parallelism = 1
