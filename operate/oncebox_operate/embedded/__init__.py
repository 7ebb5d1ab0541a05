"""PostgreSQL and a Redis-protocol broker that live and die with the process that starts them.

For development, tests and demonstration. Both come from wheels that hold nothing but the servers'
programs (extra ``embedded``); how they are started, guarded and ended is ours.
"""

from oncebox_operate.embedded.errors import EmbeddedError
from oncebox_operate.embedded.postgres import EmbeddedPostgres
from oncebox_operate.embedded.valkey import EmbeddedValkey

__all__ = ["EmbeddedError", "EmbeddedPostgres", "EmbeddedValkey"]
