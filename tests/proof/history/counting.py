"""Counting among points with two coordinates, in logarithmic time: how many lie beyond a mark, and the least value.

Points come and are never taken away; only the mark's coordinate is asked for. (A Fenwick tree.)
"""

import math
from bisect import bisect_right
from collections.abc import Iterable


class Beyond:
    """``marks`` are all places that points will have."""

    def __init__(self, marks: Iterable[float]) -> None:
        self._marks = sorted(set(marks))
        self._count = [0] * (len(self._marks) + 1)
        self._least = [math.inf] * (len(self._marks) + 1)

    def add(self, place: float, value: float) -> None:
        """A point at ``place``, which is one of the marks."""
        # Numbered from the far end, so that what lies beyond a mark is a beginning of the tree.
        at = len(self._marks) - bisect_right(self._marks, place) + 1
        while at < len(self._count):
            self._count[at] += 1
            self._least[at] = min(self._least[at], value)
            at += at & -at

    def after(self, place: float) -> tuple[int, float]:
        """How many points lie after ``place``, and the least of their values; infinity for none."""
        at = len(self._marks) - bisect_right(self._marks, place)
        count, least = 0, math.inf
        while at > 0:
            count += self._count[at]
            least = min(least, self._least[at])
            at -= at & -at
        return count, least
