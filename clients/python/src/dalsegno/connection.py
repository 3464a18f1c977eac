"""The parts that both clients share: settings, requests and answers of httpx."""

from __future__ import annotations

import os
from typing import Any

import httpx

from .decode import decode
from .errors import ApiError, Error, TransportError
from .request import Request
from .version import VERSION

DEFAULT_URL = "http://127.0.0.1:7770"
# The read timeout is longer than the service lets a request take, and than its pings in streams are apart.
TIMEOUT = httpx.Timeout(60.0, connect=10.0)


class Settings:
    def __init__(self, url: str | None, api_key: str | None) -> None:
        self.url = (url or os.environ.get("DALSEGNO_URL") or DEFAULT_URL).rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"invalid URL {self.url!r}: use for example {DEFAULT_URL}")
        key = api_key or os.environ.get("DALSEGNO_API_KEY")
        self.headers = {"User-Agent": f"dalsegno-python/{VERSION}"}
        if key:
            self.headers["Authorization"] = f"Bearer {key}"

    def build(self, http: httpx.Client | httpx.AsyncClient, request: Request) -> httpx.Request:
        return http.build_request(
            request.method,
            self.url + request.path,
            params=request.parameters(),
            headers={**self.headers, **request.headers()},
            content=request.content(),
        )

    def transport_error(self, error: httpx.TransportError) -> TransportError:
        sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        what = "the connection broke" if sent else "no connection"
        return TransportError(f"cannot get an answer from {self.url}: {what} ({error or type(error).__name__})", sent=sent)


def answer_of(response: httpx.Response, kind: Any) -> Any:
    """Returns the answer as an object. Raises a refusal."""
    if not response.is_success:
        raise refusal(response)
    if kind is None:
        return None
    if kind is bytes:
        return response.content
    return response.text if kind is str else decode(kind, response.json())


def refusal(response: httpx.Response) -> ApiError:
    return ApiError.of(response.status_code, response.headers, response.content)


def broken_stream() -> Error:
    return TransportError("the stream ended before its last event")
