"""Verification of webhooks, which are signed as Standard Webhooks describes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .errors import Error

TOLERANCE_SECS = 300


class WebhookError(Error):
    """A message that the service has not signed with this secret, or not in the last minutes. Answer it with 401."""


@dataclass(frozen=True, kw_only=True)
class WebhookEvent:
    id: str
    """The same in all attempts and replays of a delivery."""
    type: str
    """`task.done`, `task.failed`, `task.cancelled`, `budget.warning` or `webhook.test`."""
    timestamp: datetime
    """The moment of the event. Deliveries can arrive in another order."""
    data: dict[str, Any]

    @property
    def task_id(self) -> str | None:
        return self.data.get("task_id")


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secret: str | Iterable[str],
    *,
    tolerance_secs: float = TOLERANCE_SECS,
    now: float | None = None,
) -> WebhookEvent:
    """Returns the event of a genuine message, and raises `WebhookError` for all others.

    `body` has to be the raw bytes. While a secret is rotated, pass both.
    """
    found = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = found.get("webhook-id", ""), found.get("webhook-timestamp", "")
    if not message_id or not timestamp.isascii() or not timestamp.isdigit():
        raise WebhookError("webhook-id or webhook-timestamp is missing: the message does not come from this service")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance_secs:
        raise WebhookError(f"webhook-timestamp is more than {tolerance_secs:g} s off: check the clock of this machine")
    signed = f"{message_id}.{timestamp}.".encode() + body
    signatures = found.get("webhook-signature", "").split()
    expected = [signature(key_of(one), signed) for one in ([secret] if isinstance(secret, str) else secret)]
    if not any(hmac.compare_digest(one.encode(), given.encode()) for one in expected for given in signatures):
        raise WebhookError("webhook-signature does not match: check the secret, and pass the body as it was received")
    message = json.loads(body)
    return WebhookEvent(
        id=message_id,
        type=message["type"],
        timestamp=datetime.fromisoformat(message["timestamp"]),
        data=message["data"],
    )


def signature(key: bytes, signed: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def key_of(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise ValueError("invalid webhook secret: it is `whsec_` and base64, as `dalsegno webhook add` prints it") from error
