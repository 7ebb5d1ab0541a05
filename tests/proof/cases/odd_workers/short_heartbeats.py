"""A worker that the broker takes for dead after a few seconds of silence."""

from oncebox_worker.app import app

__all__ = ["app"]

app.conf.broker_heartbeat = 2
