"""The tests of everything here; each package below belongs to one part."""
