"""How one sees that a process works."""

import re
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Final

from tests.support.processes import RunningProcess

_ANSWER_S: Final = 2.0


def says(pattern: str) -> Callable[[RunningProcess], bool]:
    """Its log has a match of the regular expression."""
    wanted = re.compile(pattern)
    return lambda process: wanted.search(process.log_text()) is not None


def answers_at(url: str) -> Callable[[RunningProcess], bool]:
    """A GET is answered with 200."""

    def answers(_: RunningProcess) -> bool:
        try:
            with urllib.request.urlopen(url, timeout=_ANSWER_S) as reply:
                return bool(reply.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False

    return answers
