"""A request, before it is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4


@dataclass
class Request:
    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    takes_key: bool = False
    key: str | None = None
    last_event_id: str | None = None

    def __post_init__(self) -> None:
        # With a key the service runs a repeated request once, so each request that can have a key gets one.
        if self.takes_key and self.key is None:
            self.key = str(uuid4())

    @property
    def repeatable(self) -> bool:
        """True if the request can be sent again although the service may have received it."""
        return self.method == "GET" or self.key is not None

    def parameters(self) -> dict[str, str]:
        return {name: text(value) for name, value in self.query.items() if value is not None}

    def headers(self) -> dict[str, str]:
        headers = {}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        if self.last_event_id is not None:
            headers["Last-Event-ID"] = self.last_event_id
        return headers

    def content(self) -> bytes | None:
        return None if self.body is None else json.dumps(self.body, default=text, ensure_ascii=False).encode()


def segment(value: object) -> str:
    """Escapes a value for one segment of a path."""
    return quote(str(value), safe="")


def text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime() | date():
            return value.isoformat()
        case str() | int() | float() | UUID():
            return str(value)
    raise TypeError(f"cannot send a {type(value).__name__}: use text, a number, a bool, a datetime or a UUID")
