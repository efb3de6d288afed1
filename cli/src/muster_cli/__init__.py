"""The command line of Muster: a client of its REST API, which imports nothing of the server.

`actions` call REST and return data, `output` writes data for people and programs, `commands` are
the layer of Click above both.
"""

VERSION = "0.1.0"
"""The version of this client, and of the server whose fields and routes it knows."""
