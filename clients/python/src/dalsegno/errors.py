"""Errors of the client. All of them derive from `Error`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from .codes import ErrorCode
from .decode import decode
from .models import FieldError, TaskDetail


class Error(Exception):
    """Base class of all errors of this package."""


class TransportError(Error):
    """The service did not answer, or the connection broke."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        # False: there was no connection, so the service has not received the request.
        self.sent = sent


class WaitTimeout(Error):
    """The time of a wait is over. The task goes on."""

    def __init__(self, task_id: str, seconds: float) -> None:
        super().__init__(f"task {task_id} has not ended within {seconds:g} s: it goes on; wait again, or cancel it")
        self.task_id = task_id


class TaskFailed(Error):
    """A task of `run` has failed or was cancelled."""

    def __init__(self, task: TaskDetail) -> None:
        reason = task.error or task.cancelled_because or "no reason was given"
        super().__init__(f"task {task.id} is {task.state}: {reason}")
        self.task = task


class ApiError(Error):
    """A refusal of the service. Programs decide by `code` and `retryable`."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.code: ErrorCode | str = problem.get("code") or ""
        self.title: str = problem.get("title") or ""
        self.detail: str = problem.get("detail") or f"the service answered with status {status}"
        # A proxy answers without a problem document.
        self.retryable: bool = problem.get("retryable", status in (429, 502, 503, 504))
        self.errors: list[FieldError] = decode(list[FieldError], problem.get("errors") or [])
        self.request_id: str | None = problem.get("request_id")
        self.retry_after = retry_after
        super().__init__(f"{self.code}: {self.detail}" if self.code else self.detail)

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
        try:
            problem = json.loads(body)
        except ValueError:
            problem = None
        return cls.of_problem(status, problem if isinstance(problem, dict) else {}, seconds(headers.get("retry-after")))

    @staticmethod
    def of_problem(status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> ApiError:
        kind = BY_STATUS.get(status, ServiceError if status >= 500 else InvalidRequest)
        return kind(status, problem, retry_after)


class InvalidRequest(ApiError):
    """The request is wrong; `errors` names the fields where that is known."""


class Unauthenticated(ApiError):
    """The API key is missing, wrong, expired or revoked."""


class Forbidden(ApiError):
    """The API key does not have the scope, or is bound to another campaign."""


class NotFound(ApiError):
    """The service has no such thing, or the API key does not reach it."""


class Conflict(ApiError):
    """The state of a thing does not allow the request, or its idempotency key belongs to another one."""


class RateLimited(ApiError):
    """Too many requests. The client has waited and retried already."""


class ServiceError(ApiError):
    """The service or its database has a problem. The client has retried already if that can help."""


BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
}


def seconds(header: str | None) -> float | None:
    """Reads a `Retry-After`: seconds or a date."""
    if header is None:
        return None
    if header.strip().isdigit():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
