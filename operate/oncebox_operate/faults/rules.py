"""What is to happen to which exchanges: rules for the next ones that match, and storms for all of them."""

import threading
from dataclasses import dataclass, field

from oncebox_operate.faults.barriers import Barrier
from oncebox_operate.faults.exchanges import Exchange, Match, matches
from oncebox_operate.faults.storm import Fault, Gust, Storm, Then


@dataclass(slots=True)
class Rule:
    """A fault for the next ``left`` exchanges that match; ``struck`` are those it met."""

    fault: Fault
    left: int
    match: Match
    then: Then = "hang"
    data: bytes = b""
    keep: int = 0
    seconds: float = 0.0
    barrier: Barrier | None = None
    struck: list[Exchange] = field(default_factory=list[Exchange])


@dataclass(slots=True)
class Weather:
    """A storm over the exchanges that match. ``met`` has what each of them was to meet, in order of arrival."""

    storm: Storm
    match: Match
    met: list[tuple[Exchange, Gust]] = field(default_factory=list[tuple[Exchange, Gust]])

    def count(self, fault: Fault | None) -> int:
        """How many exchanges were to meet the fault; None: nothing."""
        return sum(gust.fault is fault for _, gust in self.met)


class RuleBook:
    """All rules and storms of one proxy. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._weathers: list[Weather] = []
        self._fates: dict[int, list[Rule]] = {}  # by the exchange that a storm has them for
        self._lock = threading.Lock()

    def add(self, rule: Rule) -> Rule:
        with self._lock:
            self._rules.append(rule)
        return rule

    def add_storm(self, storm: Storm, match: Match) -> Weather:
        weather = Weather(storm, match)
        with self._lock:
            self._weathers.append(weather)
        return weather

    def foresee(self, exchange: Exchange) -> None:
        """An exchange arrived: write down what the storms have for it."""
        with self._lock:
            for weather in self._weathers:
                if not matches(weather.match, exchange):
                    continue
                gust = weather.storm.gust(len(weather.met))
                weather.met.append((exchange, gust))
                if gust.fault is not None:
                    self._fates.setdefault(id(exchange), []).append(_rule_of(gust.fault, gust))

    def strike(self, fault: Fault, exchange: Exchange) -> Rule | None:
        """The oldest rule of that kind for the exchange; it is counted."""
        with self._lock:
            for rule in (*self._fates.get(id(exchange), ()), *self._rules):
                if rule.fault is fault and rule.left > 0 and matches(rule.match, exchange):
                    rule.left -= 1
                    rule.struck.append(exchange)
                    return rule
        return None

    def forget(self, exchange: Exchange) -> None:
        """An exchange is over: what a storm had for it is, too."""
        with self._lock:
            self._fates.pop(id(exchange), None)

    def withdraw(self, barrier: Barrier) -> None:
        """Forget the rule of a barrier, and open it."""
        with self._lock:
            self._rules = [rule for rule in self._rules if rule.barrier is not barrier]
        barrier.release()

    def clear(self) -> None:
        """Forget all; barriers open."""
        with self._lock:
            rules, self._rules = self._rules, []
            self._weathers.clear()
            self._fates.clear()
        for rule in rules:
            if rule.barrier is not None:
                rule.barrier.release()


def _rule_of(fault: Fault, gust: Gust) -> Rule:
    return Rule(fault, 1, None, gust.then, keep=gust.keep, seconds=gust.seconds)
