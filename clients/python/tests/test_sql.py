"""Tasks in the caller's own transaction, with each driver: the task exists if and only if the transaction commits."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import psycopg
import psycopg2
import pytest
from dalsegno import Client
from dalsegno.sql import EnqueueError, SqlTask, enqueue, enqueue_async, enqueue_asyncpg, enqueue_sqlalchemy
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
    }


def check(client: Client, task_id: str) -> None:
    task = client.show_task(task_id)
    assert (task.instance, task.session_mode, task.priority) == ("sql", "fresh", 7)
    assert (task.tags, task.metadata, task.flow_templates) == (["urgent", "sql"], {"order": "17"}, [])
    assert (task.budget_micros, task.result_schema) == (5_000_000_000, {"type": "object"})
    client.cancel_task(task_id)


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
        return own.execute("select 1 from dalsegno.tasks where id = %s", [task_id]).fetchone() is not None

    return exists


def test_psycopg(client: Client, own: psycopg.Connection[Any], campaign: str, exists: Callable[[str], bool]) -> None:
    with own.transaction(), own.cursor() as cursor:
        cursor.execute(INSERT)
        added = enqueue(cursor, **full(campaign, "psycopg"))
    with own.transaction(), own.cursor(row_factory=dict_row) as mapping:
        again = enqueue(mapping, **full(campaign, "psycopg"))
    assert (added.created, again.created, added.task_id) == (True, False, again.task_id)
    check(client, added.task_id)
    undone = enqueue(own.cursor(), campaign=campaign, agent="copywriter", prompt="Never.")
    assert not exists(undone.task_id)


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


def test_other_errors_stay_as_they_are(own: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        enqueue(own.cursor(), campaign="no id", agent="copywriter", prompt="Write.")


async def test_psycopg_with_asyncio(
    client: Client, libpq: dict[str, Any], campaign: str, exists: Callable[[str], bool]
) -> None:
    async with await psycopg.AsyncConnection.connect(**libpq) as own:
        async with own.transaction(), own.cursor() as cursor:
            added = await enqueue_async(cursor, **full(campaign, "psycopg-async"))
        check(client, added.task_id)
        undone = await enqueue_async(own.cursor(), campaign=campaign, agent="copywriter", prompt="Never.")
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


async def test_asyncpg(client: Client, asyncpg_connection: Any, campaign: str, exists: Callable[[str], bool]) -> None:
    own = asyncpg_connection
    async with own.transaction():
        added = await enqueue_asyncpg(own, **full(campaign, "asyncpg"))
    check(client, added.task_id)
    transaction = own.transaction()
    await transaction.start()
    undone = await enqueue_asyncpg(own, campaign=campaign, agent="copywriter", prompt="Never.")
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


def test_sqlalchemy(client: Client, libpq: dict[str, Any], campaign: str, exists: Callable[[str], bool]) -> None:
    engine = create_engine(url(libpq, "psycopg"))
    with engine.begin() as own:
        own.execute(text(ORDERS))
        own.execute(text(INSERT))
        added = enqueue_sqlalchemy(own, **full(campaign, "sqlalchemy"))
    check(client, added.task_id)
    with engine.connect() as own:
        undone = enqueue_sqlalchemy(own, campaign=campaign, agent="copywriter", prompt="Never.")
        own.rollback()
        with pytest.raises(EnqueueError, match="there is no campaign") as raised:
            enqueue_sqlalchemy(own, campaign=NOWHERE, agent="copywriter", prompt="Write.")
    assert not exists(undone.task_id)
    assert raised.value.code == "DS404" and "campaign ls" in raised.value.hint
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_sqlalchemy_with_asyncio(client: Client, libpq: dict[str, Any], campaign: str, driver: str) -> None:
    engine = create_async_engine(url(libpq, driver))
    async with engine.begin() as own:
        added = await own.run_sync(enqueue_sqlalchemy, **full(campaign, f"sqlalchemy-{driver}"))
    check(client, added.task_id)
    async with engine.connect() as own:
        with pytest.raises(EnqueueError, match="there is no campaign") as raised:
            await own.run_sync(enqueue_sqlalchemy, campaign=NOWHERE, agent="copywriter", prompt="Write.")
    assert raised.value.code == "DS404"
    await engine.dispose()
