"""The HTTP proxy of `oncebox_operate.faults`, under the name that tests know."""

from oncebox_operate.faults.barriers import Barrier, Reordering
from oncebox_operate.faults.exchanges import Exchange, Match
from oncebox_operate.faults.http_proxy import FaultProxy
from oncebox_operate.faults.rules import Rule, Weather
from oncebox_operate.faults.storm import Fault, Gust, Storm, Then

__all__ = [
    "Barrier",
    "Exchange",
    "Fault",
    "FaultProxy",
    "Gust",
    "Match",
    "Reordering",
    "Rule",
    "Storm",
    "Then",
    "Weather",
]
