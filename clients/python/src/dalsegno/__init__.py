"""Client of Dalsegno: durable conversations for LLM agents.

from dalsegno import Client

client = Client("http://127.0.0.1:7770")
task = client.run(campaign="019aa2f1-...", agent="copywriter", prompt="Write part one.")
print(task.result)
"""

from .async_client import AsyncClient
from .client import Client
from .codes import ErrorCode
from .errors import (
    ApiError,
    Conflict,
    Error,
    Forbidden,
    InvalidRequest,
    NotFound,
    RateLimited,
    ServiceError,
    TaskFailed,
    TransportError,
    Unauthenticated,
    WaitTimeout,
)
from .events import Event
from .models import Page, Task, TaskDetail
from .retry import RetryPolicy
from .version import VERSION as __version__
from .webhooks import WebhookError, WebhookEvent, verify_webhook

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "Conflict",
    "Error",
    "ErrorCode",
    "Event",
    "Forbidden",
    "InvalidRequest",
    "NotFound",
    "Page",
    "RateLimited",
    "RetryPolicy",
    "ServiceError",
    "Task",
    "TaskDetail",
    "TaskFailed",
    "TransportError",
    "Unauthenticated",
    "WaitTimeout",
    "WebhookError",
    "WebhookEvent",
    "__version__",
    "verify_webhook",
]
