"""Many tasks, in requests of a size that the service accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from . import params

# The service accepts ten times as many; smaller requests lock fewer conversations at once.
BATCH = 1_000


def batches(tasks: Iterable[params.BulkTask], prefix: str, size: int = BATCH) -> Iterator[list[params.BulkTask]]:
    """Splits tasks into requests.

    Each task gets the key that it would get in one large request: the prefix and its number. A dependency on a position is
    written as one on that key, because the earlier task may be in an earlier request.
    """
    batch: list[params.BulkTask] = []
    keys: list[str] = []
    for number, task in enumerate(tasks, 1):
        key = task.get("idempotency_key") or f"{prefix}/{number}"
        batch.append(with_key(task, key, keys))
        keys.append(key)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def with_key(task: params.BulkTask, key: str, keys: list[str]) -> params.BulkTask:
    keyed: params.BulkTask = {**task, "idempotency_key": key}
    if "depends_on" in task:
        keyed["depends_on"] = [by_key(link, keys) for link in task["depends_on"]]
    return keyed


def by_key(link: params.TaskLink, keys: list[str]) -> params.TaskLink:
    if isinstance(link, dict) and "item" in link:
        item = cast(params.TaskLinkItem, link)["item"]
        if not 0 <= item < len(keys):
            raise ValueError(f"task {len(keys)} depends on item {item}, which does not come before it: count from 0")
        return {"key": keys[item]}
    return link
