"""Adds tasks within a transaction of your own, in the database of the service.

The task exists if and only if your transaction commits. Each function calls `dalsegno.add_task`, for one kind of connection:

- `enqueue`: a cursor of psycopg, psycopg2 or Django
- `enqueue_async`: an asynchronous cursor of psycopg
- `enqueue_asyncpg`: a connection of asyncpg
- `enqueue_sqlalchemy`: a session or connection of SQLAlchemy; `await session.run_sync(enqueue_sqlalchemy, ...)` with asyncio
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn, Required, TypedDict, Unpack
from uuid import UUID

from . import enums
from .errors import Error
from .request import text as json_text


class SqlAttachment(TypedDict, total=False):
    """A file of another task of the campaign: an output file, or one of its attachments."""

    task: Required[str | UUID]
    file: Required[str]
    name: str
    """Name that the model is told, without folders. By default that of `file`."""


class SqlTask(TypedDict, total=False):
    """Arguments of `dalsegno.add_task`."""

    campaign: Required[str | UUID]
    agent: Required[str]
    prompt: Required[str]
    depends_on: Sequence[str | UUID]
    """Tasks of the same campaign, also of this transaction."""
    on_failure: enums.OnFailure
    parent_id: str | UUID
    instance: str
    session_mode: enums.SessionMode
    budget_micros: int
    budget_tokens: int
    idempotency_key: str
    priority: int
    """0 is the most urgent; 100 is the default."""
    run_at: datetime
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    flow_templates: Sequence[str]
    result_schema: Mapping[str, Any]
    within_secs: int
    """Seconds that the answer may take."""
    attachments: Sequence[SqlAttachment]


@dataclass(frozen=True)
class EnqueueResult:
    task_id: str
    created: bool
    """False: an earlier call with this idempotency key created the task."""


class EnqueueError(Error):
    """The function refused the task. Like any error of Postgres, this has failed the transaction, or its savepoint."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        # DS400, DS404, DS409 or DS413.
        self.code = code
        self.hint = hint


# The types, because drivers send text without one.
TYPES = {
    "campaign_id": "uuid",
    "depends_on": "uuid[]",
    "parent_id": "uuid",
    "budget_micros": "bigint",
    "budget_tokens": "bigint",
    "priority": "integer",
    "run_at": "timestamptz",
    "tags": "text[]",
    "metadata": "jsonb",
    "flow_templates": "text[]",
    "result_schema": "jsonb",
    "within_secs": "integer",
    "attachments": "jsonb",
}


def enqueue(cursor: Any, **task: Unpack[SqlTask]) -> EnqueueResult:
    """Adds a task through a cursor of DB-API whose parameters are written `%s`."""
    names, values = arguments(task)
    try:
        cursor.execute(statement(names, lambda _: "%s"), values)
        return result(cursor.fetchone())
    except Exception as error:
        refuse(error)


async def enqueue_async(cursor: Any, **task: Unpack[SqlTask]) -> EnqueueResult:
    """Adds a task through an asynchronous cursor of psycopg."""
    names, values = arguments(task)
    try:
        await cursor.execute(statement(names, lambda _: "%s"), values)
        return result(await cursor.fetchone())
    except Exception as error:
        refuse(error)


async def enqueue_asyncpg(connection: Any, **task: Unpack[SqlTask]) -> EnqueueResult:
    """Adds a task through a connection of asyncpg."""
    names, values = arguments(task)
    try:
        return result(await connection.fetchrow(statement(names, lambda place: f"${place}"), *values))
    except Exception as error:
        refuse(error)


def enqueue_sqlalchemy(session: Any, **task: Unpack[SqlTask]) -> EnqueueResult:
    """Adds a task through a session or connection of SQLAlchemy."""
    from sqlalchemy import text

    names, values = arguments(task)
    query = text(statement(names, lambda place: f":p{place}"))
    try:
        return result(session.execute(query, {f"p{place}": value for place, value in enumerate(values, 1)}).one())
    except Exception as error:
        refuse(error)


def arguments(task: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    """Returns the given arguments, so that the statement also suits older databases, which lack the newest ones."""
    given = {name: value for name, value in task.items() if value is not None}
    given["campaign_id"] = given.pop("campaign")
    return list(given), [bound(name, value) for name, value in given.items()]


def bound(name: str, value: Any) -> Any:
    match TYPES.get(name):
        case "jsonb":
            return json.dumps(value, default=json_text)
        case "uuid":
            return str(value)
        case "uuid[]":
            return [str(one) for one in value]
        case "text[]":
            return list(value)
    return value


def statement(names: Sequence[str], placeholder: Callable[[int], str]) -> str:
    # `cast`, because `:p1::uuid` is no parameter for SQLAlchemy.
    listed = (f"{name} => cast({placeholder(place)} as {TYPES.get(name, 'text')})" for place, name in enumerate(names, 1))
    return f"select task_id, created from dalsegno.add_task({', '.join(listed)})"


def result(row: Any) -> EnqueueResult:
    # Cursors may be set up to return mappings.
    task_id, created = (row["task_id"], row["created"]) if isinstance(row, Mapping) else (row[0], row[1])
    return EnqueueResult(str(task_id), created)


def refuse(error: Exception) -> NoReturn:
    """Raises a refusal of the function as such, and all other errors as they are."""
    # SQLAlchemy and Django wrap the error of the driver, and adapters of asyncpg wrap it once more.
    cause: BaseException | None = error
    while cause is not None:
        code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
        if isinstance(code, str) and code.startswith("DS4"):
            about = getattr(cause, "diag", cause)
            message = getattr(about, "message_primary", None) or str(getattr(cause, "message", cause))
            hint = getattr(about, "message_hint", None) or getattr(cause, "hint", None) or ""
            raise EnqueueError(code, message, hint) from error
        cause = getattr(cause, "orig", None) or cause.__cause__
    raise error
