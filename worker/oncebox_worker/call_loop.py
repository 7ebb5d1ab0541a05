"""One event loop in a thread of its own, for all HTTP of a worker process. SQL stays in the tasks' threads."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

Result = TypeVar("Result")


class CallLoop:
    """Runs coroutines for threads that are not async. Daemonic: it ends with the process."""

    def __init__(self) -> None:
        self._loop: Final = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="calls", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`, waited for in the calling thread. It must bound its own time."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
