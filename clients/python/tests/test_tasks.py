"""Tasks: add, wait, bulk, lists, typed answers."""

from datetime import UTC, datetime

import pytest
from dalsegno import AsyncClient, Client, Conflict, InvalidRequest, NotFound, TaskFailed, WaitTimeout
from dalsegno.params import BulkTask


def test_run_returns_the_result(client: Client, campaign: str) -> None:
    task = client.run(campaign=campaign, agent="copywriter", prompt="[[sim: say The harbour wakes.]]", tags=["urgent"])
    assert (task.state, task.result, task.tags) == ("done", "The harbour wakes.", ["urgent"])
    assert task.ended_at is not None and task.ended_at <= datetime.now(UTC)
    assert task.turns[0].state == "done" and task.spent_tokens > 0


def test_an_output_file_is_bytes(client: Client, campaign: str) -> None:
    prompt = "[[sim: file report.txt Die Möwe.]]"
    task = client.run(campaign=campaign, agent="copywriter", instance="files", prompt=prompt)
    files = client.list_task_files(task.id).items
    assert [file.name for file in files] == ["report.txt"]
    assert client.download_task_file(task.id, "report.txt") == "Die Möwe.".encode()


async def test_run_returns_the_result_with_asyncio(async_client: AsyncClient, campaign: str) -> None:
    task = await async_client.run(campaign=campaign, agent="copywriter", prompt="[[sim: say The quay is quiet.]]")
    assert (task.state, task.result) == ("done", "The quay is quiet.")


def test_a_failed_task_raises_with_the_task(client: Client, campaign: str) -> None:
    with pytest.raises(TaskFailed, match="failed") as raised:
        client.run(campaign=campaign, agent="reviewer", instance="failing", prompt="[[sim: error 400]]")
    assert raised.value.task.state == "failed" and raised.value.task.error


def test_a_wait_ends_and_the_task_can_be_cancelled(client: Client, campaign: str) -> None:
    added = client.add_task(
        campaign, agent="copywriter", instance="later", prompt="Later.", run_at=datetime(2999, 1, 1, tzinfo=UTC)
    )
    with pytest.raises(WaitTimeout, match=added.id):
        client.wait(added, timeout=0.2)
    client.cancel_task(added.id, reason="not needed")
    cancelled = client.wait(added.id)
    assert (cancelled.state, cancelled.cancelled_because) == ("cancelled", "not needed")


async def test_a_wait_ends_with_asyncio(async_client: AsyncClient, campaign: str) -> None:
    added = await async_client.add_task(
        campaign, agent="copywriter", instance="later", prompt="Later.", run_at=datetime(2999, 1, 1, tzinfo=UTC)
    )
    with pytest.raises(WaitTimeout):
        await async_client.wait(added, timeout=0.2)
    await async_client.cancel_task(added.id)


def test_the_same_key_returns_the_same_task(client: Client, campaign: str) -> None:
    tasks = [client.add_task(campaign, agent="copywriter", prompt="Once.", idempotency_key="order-17") for _ in range(2)]
    assert [task.created for task in tasks] == [True, False]
    assert tasks[0].id == tasks[1].id
    with pytest.raises(Conflict) as raised:
        client.add_task(campaign, agent="copywriter", prompt="Another.", idempotency_key="order-17")
    assert (raised.value.code, raised.value.retryable) == ("idempotency_conflict", False)


def test_errors_are_typed(client: Client, campaign: str) -> None:
    with pytest.raises(NotFound) as missing:
        client.show_task("019aa2f1-0000-7000-8000-000000000000")
    assert missing.value.code == "unknown_task" and missing.value.request_id
    with pytest.raises(InvalidRequest) as wrong:
        client.add_task(campaign, agent="copywriter", prompt="Write.", session="later")  # type: ignore[arg-type]
    assert (wrong.value.status, wrong.value.code) == (422, "bad_field")
    assert [error.pointer for error in wrong.value.errors] == ["/session"]


def numbered(n: int) -> list[BulkTask]:
    return [
        {"agent": "copywriter", "instance": f"part_{number}", "prompt": f"[[sim: say Part {number}.]]"} for number in range(n)
    ]


def test_bulk_splits_and_can_be_repeated(client: Client, campaign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalsegno.bulk.batches.__defaults__", (2,))
    tasks = numbered(3)
    tasks.append({"agent": "planner", "instance": "bulk", "prompt": "Join.", "depends_on": [{"item": 0}, {"item": 2}]})
    first = client.add_tasks(campaign=campaign, tasks=tasks, idempotency_key="import-1")
    again = client.add_tasks(campaign=campaign, tasks=iter(tasks), idempotency_key="import-1")
    assert (first.created, again.created) == (4, 0)
    assert [item.id for item in first.items] == [item.id for item in again.items]
    joined = client.wait(first.items[3].id)
    assert joined.waiting is not None
    assert [one.task_id for one in joined.waiting.depends_on] == [first.items[0].id, first.items[2].id]


async def test_bulk_with_asyncio(async_client: AsyncClient, campaign: str) -> None:
    added = await async_client.add_tasks(campaign=campaign, tasks=numbered(3))
    assert added.created == 3


def test_every_reads_all_pages(client: Client, own_campaign: str) -> None:
    added = client.add_tasks(campaign=own_campaign, tasks=numbered(5))
    listed = client.every(client.list_tasks, campaign_id=own_campaign, limit=2)
    assert [task.id for task in listed] == [item.id for item in reversed(added.items)]


async def test_every_reads_all_pages_with_asyncio(async_client: AsyncClient, own_campaign: str) -> None:
    added = await async_client.add_tasks(campaign=own_campaign, tasks=numbered(3))
    listed = async_client.every(async_client.list_tasks, campaign_id=own_campaign, limit=2)
    assert [task.id async for task in listed] == [item.id for item in reversed(added.items)]


def test_null_and_absent_differ(client: Client, own_campaign: str) -> None:
    limited = client.change_budget(own_campaign, micros=5_000_000, tokens=9_000)
    assert (limited.limit.micros, limited.limit.tokens) == (5_000_000, 9_000)
    changed = client.change_budget(own_campaign, micros=None)
    assert (changed.limit.micros, changed.limit.tokens) == (None, 9_000)
