"""Decisions about retries."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import ApiError, Error, TransportError
from .request import Request

FIRST_WAIT = 0.5
LONGEST_BACKOFF = 8.0


@dataclass(frozen=True)
class RetryPolicy:
    """Retries with a growing wait. A `Retry-After` of the service is honoured."""

    max_retries: int = 4
    longest_wait: float = 60.0
    """Seconds. An error that asks for a longer wait is raised, with `retry_after`."""

    def wait(self, error: Error, request: Request, retries: int) -> float | None:
        """Returns the seconds until the next try, or `None` to give up."""
        if retries >= self.max_retries or not can_repeat(error, request):
            return None
        asked = error.retry_after if isinstance(error, ApiError) else None
        wait = asked if asked is not None else backoff(retries)
        return wait if wait <= self.longest_wait else None


DEFAULT_RETRIES = RetryPolicy()


def can_repeat(error: Error, request: Request) -> bool:
    if isinstance(error, ApiError):
        # A rate limit refuses a request before it runs; other refusals may come after a part of it has run.
        return error.retryable and (request.repeatable or error.status == 429)
    return isinstance(error, TransportError) and (request.repeatable or not error.sent)


def backoff(retries: int) -> float:
    """Doubles the wait with each retry. Clients that failed together come back at different moments."""
    return min(FIRST_WAIT * 2.0**retries, LONGEST_BACKOFF) * random.uniform(0.5, 1.0)
