"""The HTTP proxy of `oncebox_operate.faults`, under the name that tests know."""

from oncebox_operate.faults.http_proxy import Barrier, Exchange, FaultProxy, Match, Rule, Then

__all__ = ["Barrier", "Exchange", "FaultProxy", "Match", "Rule", "Then"]
