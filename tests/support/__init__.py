"""What the tests stand on: real processes, a network that fails on request, waiting with a limit."""
