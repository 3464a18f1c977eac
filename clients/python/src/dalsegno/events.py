"""Server-sent events of tasks and of the feed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .decode import decode
from .errors import ApiError
from .event_data import EventData
from .models import FeedEvent, Task


@dataclass(frozen=True, kw_only=True)
class Event(EventData):
    id: str
    """Pass it as `last_event_id` to continue after this event, also from another process."""
    kind: str
    """`task.queued`, `turn.progress`, `turn.done` and so on; `end` is the last event of a task."""
    feed: FeedEvent | None = None
    """The event. `None` for `end`."""
    task: Task | None = None
    """The task with its result, only for `end`."""
    rest: str = ""
    """The part of the result that no event before `end` had."""

    @property
    def data(self) -> dict[str, Any]:
        """Fields of the event, such as the number of the turn. `data_of` returns them with the type for a kind."""
        data = self.feed.data if self.feed else None
        return data if isinstance(data, dict) else {}

    @property
    def text(self) -> str:
        """The part of the answer that arrived since the previous event; empty for events without text.

        The texts of all events are the answer, unless its turn was repeated: then the text of `end` is the whole answer.
        """
        return str(self.data.get("text") or "") if self.kind == "turn.progress" else self.rest


class EventReader:
    """Reads events from the bytes of a stream."""

    def __init__(self) -> None:
        self.rest = b""
        self.lines: list[tuple[str, str]] = []

    def read(self, piece: bytes) -> Iterator[Event]:
        *lines, self.rest = (self.rest + piece).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace").removesuffix("\r")
            if text:
                name, _, value = text.partition(":")
                self.lines.append((name, value.removeprefix(" ")))
            elif event := self.event():
                yield event

    def event(self) -> Event | None:
        fields, data = dict(self.lines), [value for name, value in self.lines if name == "data"]
        self.lines = []
        if not data:
            # A comment, which only keeps the connection open.
            return None
        return event_of(fields.get("id", ""), fields.get("event", "message"), json.loads("\n".join(data)))


def event_of(event_id: str, kind: str, data: Any) -> Event:
    match kind:
        case "error":
            raise ApiError.of_problem(data.get("status", 500), data)
        case "end":
            return Event(id=event_id, kind=kind, task=decode(Task, data), rest=data.get("rest", ""))
        case _:
            return Event(id=event_id, kind=kind, feed=decode(FeedEvent, data))
