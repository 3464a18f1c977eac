"""Tasks in your own transaction, with each driver: a task and its files exist if and only if the transaction commits."""

import base64
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import psycopg
import psycopg2
import pytest
from dalsegno import Client
from dalsegno.params import NewAttachment
from dalsegno.sql import EnqueueError, EnqueueResult, SqlTask, enqueue, enqueue_async, enqueue_asyncpg, enqueue_sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy import URL, create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from service import Service

NOWHERE = "019aa2f1-0000-7000-8000-000000000000"
ORDERS = "create table if not exists own_orders (id bigint generated always as identity primary key, task_id uuid)"
INSERT = "insert into own_orders (task_id) values (null)"


def full(campaign: str, key: str) -> SqlTask:
    """A task with every argument that needs no other task."""
    return {
        "campaign": campaign,
        "agent": "copywriter",
        "prompt": "Write part one.",
        "instance": "sql",
        "session_mode": "fresh",
        "budget_micros": 5_000_000_000,
        "budget_tokens": 100_000,
        "idempotency_key": key,
        "priority": 7,
        "run_at": datetime(2999, 1, 1, tzinfo=UTC),
        "tags": ["urgent", "sql"],
        "metadata": {"order": "17"},
        "flow_templates": [],
        "result_schema": {"type": "object"},
        "within_secs": 86_400,
    }


def check(client: Client, task_id: str) -> None:
    task = client.show_task(task_id)
    assert (task.instance, task.session_mode, task.priority) == ("sql", "fresh", 7)
    assert (task.tags, task.metadata, task.flow_templates) == (["urgent", "sql"], {"order": "17"}, [])
    assert (task.budget_micros, task.result_schema, task.within_secs) == (5_000_000_000, {"type": "object"}, 86_400)
    client.cancel_task(task_id)


@pytest.fixture
def with_file(client: Client, campaign: str) -> SqlTask:
    """A task that answers with a word of its file."""
    content = base64.b64encode(b"The word is TIDE-4711.").decode()
    notes: NewAttachment = {"name": "notes.md", "content": content}
    source = client.add_task(campaign, agent="planner", instance="files", prompt="Read.", attachments=[notes])
    return {
        "campaign": campaign,
        "agent": "copywriter",
        "instance": "files",
        "session_mode": "none",
        "prompt": "[[sim: quote TIDE-]]",
        "within_secs": 86_400,
        "attachments": [{"task": UUID(source.id), "file": "notes.md", "name": "word.md"}],
    }


def check_file(client: Client, added: EnqueueResult) -> None:
    task = client.wait(added.task_id)
    assert task.within_secs == 86_400 and task.result is not None and "TIDE-4711" in task.result, task
    assert [(file.name, file.turn) for file in client.list_task_files(task.id).items] == [("word.md", None)]


@pytest.fixture
def libpq(service: Service) -> dict[str, Any]:
    env = service.postgres
    return {"host": env["PGHOST"], "user": env["PGUSER"], "dbname": env["PGDATABASE"], "password": env["PGPASSWORD"]}


@pytest.fixture
def own(libpq: dict[str, Any]) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(**libpq) as own:
        own.execute(ORDERS)
        own.commit()
        yield own


@pytest.fixture
def exists(own: psycopg.Connection[Any]) -> Callable[[str], bool]:
    def exists(task_id: str) -> bool:
        own.rollback()
        files = "select task_id from dalsegno.task_attachments"
        return (
            own.execute(f"select from (select id from dalsegno.tasks union {files}) as t where id = %s", [task_id]).rowcount > 0
        )

    return exists


def test_psycopg(
    client: Client, own: psycopg.Connection[Any], campaign: str, exists: Callable[[str], bool], with_file: SqlTask
) -> None:
    with own.transaction(), own.cursor() as cursor:
        cursor.execute(INSERT)
        added = enqueue(cursor, **full(campaign, "psycopg"))
        given = enqueue(cursor, **with_file)
    with own.transaction(), own.cursor(row_factory=dict_row) as mapping:
        again = enqueue(mapping, **full(campaign, "psycopg"))
    assert (added.created, again.created, added.task_id) == (True, False, again.task_id)
    check(client, added.task_id)
    check_file(client, given)
    undone = enqueue(own.cursor(), **with_file)
    assert not exists(undone.task_id) and exists(given.task_id)


def test_psycopg2(client: Client, libpq: dict[str, Any], campaign: str) -> None:
    own = psycopg2.connect(**libpq)
    with own, own.cursor() as cursor:
        added = enqueue(cursor, **full(campaign, "psycopg2"))
        second = enqueue(cursor, campaign=campaign, agent="planner", prompt="Second.", depends_on=[added.task_id])
    check(client, added.task_id)
    waiting = client.show_task(second.task_id).waiting
    assert waiting is not None and [one.task_id for one in waiting.depends_on] == [added.task_id]
    with pytest.raises(EnqueueError, match="there is no campaign") as raised:
        enqueue(own.cursor(), campaign=NOWHERE, agent="copywriter", prompt="Write.")
    assert raised.value.code == "DS404" and "campaign ls" in raised.value.hint
    own.close()


def test_dependencies(client: Client, own: psycopg.Connection[Any], campaign: str) -> None:
    with own.transaction():
        first = enqueue(own.cursor(), campaign=campaign, agent="copywriter", instance="sql_first", prompt="First.")
        second = enqueue(own.cursor(), campaign=campaign, agent="planner", prompt="Second.", depends_on=[first.task_id])
    waiting = client.wait(second.task_id).waiting
    assert waiting is not None and [one.task_id for one in waiting.depends_on] == [first.task_id]


def test_a_refusal_has_code_and_hint(own: psycopg.Connection[Any]) -> None:
    with pytest.raises(EnqueueError, match="there is no campaign") as raised:
        enqueue(own.cursor(), campaign=NOWHERE, agent="copywriter", prompt="Write.")
    assert raised.value.code == "DS404" and "campaign ls" in raised.value.hint


def test_a_file_and_a_time_are_checked_as_over_http(own: psycopg.Connection[Any], with_file: SqlTask) -> None:
    content: Any = [{"name": "notes.md", "content": "VGlkZQ=="}]
    wrong: list[tuple[str, str, SqlTask]] = [
        ("DS404", "has no file `none.md`", {**with_file, "attachments": [{"task": NOWHERE, "file": "none.md"}]}),
        ("DS400", "does not name a file", {**with_file, "attachments": content}),
        ("DS400", "may not take 60 s", {**with_file, "within_secs": 60}),
    ]
    for code, words, task in wrong:
        with pytest.raises(EnqueueError, match=words) as raised, own.transaction():
            enqueue(own.cursor(), **task)
        assert raised.value.code == code and raised.value.hint


def test_other_errors_stay_as_they_are(own: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        enqueue(own.cursor(), campaign="no id", agent="copywriter", prompt="Write.")


async def test_psycopg_with_asyncio(
    client: Client, libpq: dict[str, Any], campaign: str, exists: Callable[[str], bool], with_file: SqlTask
) -> None:
    async with await psycopg.AsyncConnection.connect(**libpq) as own:
        async with own.transaction(), own.cursor() as cursor:
            added = await enqueue_async(cursor, **full(campaign, "psycopg-async"))
            given = await enqueue_async(cursor, **with_file)
        check(client, added.task_id)
        check_file(client, given)
        undone = await enqueue_async(own.cursor(), **with_file)
        await own.rollback()
        assert not exists(undone.task_id)
        with pytest.raises(EnqueueError, match="there is no campaign"):
            await enqueue_async(own.cursor(), campaign=NOWHERE, agent="copywriter", prompt="Write.")


@pytest.fixture
async def asyncpg_connection(service: Service) -> AsyncIterator[Any]:
    env = service.postgres
    own = await asyncpg.connect(host=env["PGHOST"], user=env["PGUSER"], database=env["PGDATABASE"], password=env["PGPASSWORD"])
    yield own
    await own.close()


async def test_asyncpg(
    client: Client, asyncpg_connection: Any, campaign: str, exists: Callable[[str], bool], with_file: SqlTask
) -> None:
    own = asyncpg_connection
    async with own.transaction():
        added = await enqueue_asyncpg(own, **full(campaign, "asyncpg"))
        given = await enqueue_asyncpg(own, **with_file)
    check(client, added.task_id)
    check_file(client, given)
    transaction = own.transaction()
    await transaction.start()
    undone = await enqueue_asyncpg(own, **with_file)
    await transaction.rollback()
    assert not exists(undone.task_id)
    with pytest.raises(EnqueueError, match="there is no campaign") as raised:
        await enqueue_asyncpg(own, campaign=NOWHERE, agent="copywriter", prompt="Write.")
    assert raised.value.code == "DS404" and "campaign ls" in raised.value.hint


def url(libpq: dict[str, Any], driver: str) -> URL:
    return URL.create(
        f"postgresql+{driver}",
        username=libpq["user"],
        password=libpq["password"],
        database=libpq["dbname"],
        query={"host": libpq["host"]},
    )


def test_sqlalchemy(
    client: Client, libpq: dict[str, Any], campaign: str, exists: Callable[[str], bool], with_file: SqlTask
) -> None:
    engine = create_engine(url(libpq, "psycopg"))
    with engine.begin() as own:
        own.execute(text(ORDERS))
        own.execute(text(INSERT))
        added = enqueue_sqlalchemy(own, **full(campaign, "sqlalchemy"))
        given = enqueue_sqlalchemy(own, **with_file)
    check(client, added.task_id)
    check_file(client, given)
    with engine.connect() as own:
        undone = enqueue_sqlalchemy(own, **with_file)
        own.rollback()
        with pytest.raises(EnqueueError, match="there is no campaign") as raised:
            enqueue_sqlalchemy(own, campaign=NOWHERE, agent="copywriter", prompt="Write.")
    assert not exists(undone.task_id)
    assert raised.value.code == "DS404" and "campaign ls" in raised.value.hint
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_sqlalchemy_with_asyncio(
    client: Client, libpq: dict[str, Any], campaign: str, exists: Callable[[str], bool], with_file: SqlTask, driver: str
) -> None:
    engine = create_async_engine(url(libpq, driver))
    async with engine.begin() as own:
        added = await own.run_sync(enqueue_sqlalchemy, **full(campaign, f"sqlalchemy-{driver}"))
        given = await own.run_sync(enqueue_sqlalchemy, **with_file)
    check(client, added.task_id)
    check_file(client, given)
    async with engine.connect() as own:
        undone = await own.run_sync(enqueue_sqlalchemy, **with_file)
        await own.rollback()
        assert not exists(undone.task_id)
        with pytest.raises(EnqueueError, match="there is no campaign") as raised:
            await own.run_sync(enqueue_sqlalchemy, campaign=NOWHERE, agent="copywriter", prompt="Write.")
    assert raised.value.code == "DS404"
    await engine.dispose()
