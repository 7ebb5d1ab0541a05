"""How to talk to a receiver: the protocol every destination follows, and the client of our note service."""
