"""The commands: the layer of Click over `actions` and `output`."""
