"""`oncebox up`: everything on this machine as children of one process, and what tells other commands about it."""
