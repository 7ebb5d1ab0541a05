"""A network that fails on demand: what the demonstration breaks, and what the tests break."""
