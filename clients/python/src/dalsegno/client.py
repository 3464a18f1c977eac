"""The client for programs without asyncio."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, Unpack
from uuid import UUID, uuid4

import httpx

from . import params
from .bulk import batches
from .connection import TIMEOUT, Settings, answer_of, broken_stream, refusal
from .errors import Error, TaskFailed, WaitTimeout
from .events import Event, EventReader
from .models import AddedMany, AddedTask, Page, TaskDetail
from .operations import Operations
from .request import Request
from .retry import DEFAULT_RETRIES, RetryPolicy
from .waits import Deadline

P = ParamSpec("P")
T = TypeVar("T")


class Client(Operations):
    """A client of a service. Threads may share it."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        retry: RetryPolicy = DEFAULT_RETRIES,
        http: httpx.Client | None = None,
    ) -> None:
        """Connects to `url`, by default `DALSEGNO_URL` or this machine, with a key, by default `DALSEGNO_API_KEY`.

        Pass an `http` client of your own to set proxies, certificates or timeouts.
        """
        self._settings = Settings(url, api_key)
        self._retry = retry
        self._http = http or httpx.Client(timeout=TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def run(
        self,
        *,
        campaign: str | UUID,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        **task: Unpack[params.NewTask],
    ) -> TaskDetail:
        """Adds a task, waits for its end and returns it with its result.

        Raises `TaskFailed` if it fails or is cancelled, and `WaitTimeout` after `timeout` seconds.
        """
        added = self.add_task(campaign, idempotency_key=idempotency_key, **task)
        ended = self.wait(added.id, timeout=timeout)
        if ended.state != "done":
            raise TaskFailed(ended)
        return ended

    def stream(
        self, *, campaign: str | UUID, idempotency_key: str | None = None, **task: Unpack[params.NewTask]
    ) -> Iterator[Event]:
        """Adds a task and yields its events until it has ended; `event.text` is new text of the answer."""
        return self.follow_task(self.add_task(campaign, idempotency_key=idempotency_key, **task).id)

    def wait(self, task: str | UUID | AddedTask, *, timeout: float | None = None) -> TaskDetail:
        """Waits until a task has ended, in any state. Raises `WaitTimeout` after `timeout` seconds."""
        task_id = task.id if isinstance(task, AddedTask) else str(task)
        deadline = Deadline(timeout)
        while True:
            found = self.show_task(task_id, wait=deadline.next_wait())
            if found.ended_at is not None:
                return found
            if deadline.is_over():
                raise WaitTimeout(task_id, deadline.seconds)

    def add_tasks(
        self, *, campaign: str | UUID, tasks: Iterable[params.BulkTask], idempotency_key: str | None = None
    ) -> AddedMany:
        """Adds any number of tasks, a thousand per request.

        Each request adds all of its tasks or none. With an `idempotency_key` the call can be repeated after any failure.
        """
        prefix = idempotency_key or str(uuid4())
        parts = [self.add_many_tasks(campaign, batch, idempotency_key=prefix) for batch in batches(tasks, prefix)]
        return AddedMany(created=sum(part.created for part in parts), items=[item for part in parts for item in part.items])

    def every(self, call: Callable[P, Page[T]], *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        """Yields the items of all pages: `client.every(client.list_tasks, state="failed")`."""
        page = call(*args, **kwargs)
        while True:
            yield from page.items
            if page.next is None:
                return
            kwargs["cursor"] = page.next
            page = call(*args, **kwargs)

    def _call(self, request: Request, answer: Any) -> Any:
        retries = 0
        while True:
            try:
                return answer_of(self._send(request), answer)
            except Error as error:
                wait = self._retry.wait(error, request, retries)
                if wait is None:
                    raise
            time.sleep(wait)
            retries += 1

    def _send(self, request: Request) -> httpx.Response:
        try:
            return self._http.send(self._settings.build(self._http, request))
        except httpx.TransportError as error:
            raise self._settings.transport_error(error) from error

    def _stream(self, request: Request) -> Iterator[Event]:
        retries = 0
        while True:
            try:
                with self._open(request) as response:
                    if response.status_code == 204:
                        # Everything was received before.
                        return
                    reader = EventReader()
                    for piece in response.iter_bytes():
                        for event in reader.read(piece):
                            retries = 0
                            request.last_event_id = event.id
                            yield event
                            if event.kind == "end":
                                return
                        # Also a ping shows that the service is there; a refusal within the stream does not.
                        retries = 0
                raise broken_stream()
            except Error as error:
                wait = self._retry.wait(error, request, retries)
                if wait is None:
                    raise
            time.sleep(wait)
            retries += 1

    @contextmanager
    def _open(self, request: Request) -> Iterator[httpx.Response]:
        """Opens a stream, and closes it at the end."""
        try:
            response = self._http.send(self._settings.build(self._http, request), stream=True)
            try:
                if not response.is_success:
                    response.read()
                    raise refusal(response)
                yield response
            finally:
                response.close()
        except httpx.TransportError as error:
            raise self._settings.transport_error(error) from error
