"""The deadline of a wait."""

from __future__ import annotations

import time

# The service lets a request take 30 seconds by default.
LONGEST_WAIT = 25.0


class Deadline:
    def __init__(self, seconds: float | None) -> None:
        self.seconds = float("inf") if seconds is None else seconds
        self.end = time.monotonic() + self.seconds

    def is_over(self) -> bool:
        return time.monotonic() >= self.end

    def next_wait(self) -> str:
        """Returns the time for which the next request waits."""
        left = min(max(self.end - time.monotonic(), 0.0), LONGEST_WAIT)
        return f"{int(left * 1000)}ms"
