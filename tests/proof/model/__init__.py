"""A model of the protocol, explored exhaustively.

One operation, two workers, a network that delays, reorders, loses and repeats, a receiver, two clocks. The sender's
decisions are the product's own (`oncebox_outbox.rules`, the client's table of outcomes); its statements are mirrored
here and compared with the real ones on a real PostgreSQL. `python -m tests.proof.model` explores and prints.
"""
