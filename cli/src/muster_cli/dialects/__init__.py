"""Other systems' command lines, spoken by Muster: `runai` and `arena`.

Each is a table of commands and flags. A flag says which flag of `muster` it becomes, or why it is
refused and what to use instead; submissions and logs are those of `muster` itself.
"""
