"""Retries: what is repeated, when, and that the service runs it once."""

import time

import httpx
import pytest
from dalsegno import (
    ApiError,
    AsyncClient,
    Client,
    RateLimited,
    RetryPolicy,
    ServiceError,
    TransportError,
    Unauthenticated,
)
from dalsegno.errors import seconds
from dalsegno.request import Request

from faults import Fault, faulty
from service import Service

BUSY = {"status": 503, "code": "database_busy", "detail": "the conversation is locked", "retryable": True}
ADD = "/tasks"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replaces the waits of the client without asyncio, and lists them."""
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    return waits


def test_a_lost_answer_is_fetched_without_a_second_task(service: Service, own_campaign: str) -> None:
    with (
        faulty(service.url, ADD, Fault(loses_answer=True), Fault()) as (url, proxy),
        Client(url, service.key) as client,
    ):
        added = client.add_task(own_campaign, agent="copywriter", prompt="Once.")
        assert [task.id for task in client.every(client.list_tasks, campaign_id=own_campaign)] == [added.id]
        keys = {seen.headers["idempotency-key"] for seen in proxy.seen if seen.method == "POST"}
        assert (len(proxy.seen), len(keys), added.created) == (4, 1, False)


async def test_a_lost_answer_is_fetched_with_asyncio(service: Service, own_campaign: str) -> None:
    with faulty(service.url, ADD, Fault(loses_answer=True)) as (url, proxy):
        async with AsyncClient(url, service.key) as client:
            added = await client.add_task(own_campaign, agent="copywriter", prompt="Once.")
            assert (len(proxy.seen), added.created) == (2, False)


def test_retry_after_is_honoured(service: Service, campaign: str, waits: list[float]) -> None:
    faults = Fault(503, {"Retry-After": "7"}, BUSY), Fault(503, problem=BUSY)
    with faulty(service.url, ADD, *faults) as (url, proxy), Client(url, service.key) as client:
        assert client.add_task(campaign, agent="copywriter", prompt="Write.").created
    assert len(proxy.seen) == 3
    assert waits[0] == 7 and 0.5 <= waits[1] <= 1


def test_a_refusal_that_is_not_retryable_is_raised_at_once(service: Service, campaign: str, waits: list[float]) -> None:
    problem = {**BUSY, "code": "internal", "retryable": False}
    with faulty(service.url, ADD, Fault(500, problem=problem)) as (url, proxy), Client(url, service.key) as client:
        with pytest.raises(ServiceError) as raised:
            client.add_task(campaign, agent="copywriter", prompt="Write.")
    assert (raised.value.code, len(proxy.seen), waits) == ("internal", 1, [])


def test_retries_end(service: Service, campaign: str, waits: list[float]) -> None:
    faults = [Fault(502)] * 5
    with faulty(service.url, ADD, *faults) as (url, proxy), Client(url, service.key) as client:
        with pytest.raises(ServiceError):
            client.add_task(campaign, agent="copywriter", prompt="Write.")
    assert (len(proxy.seen), len(waits)) == (5, 4)
    assert sum(waits) <= 7.5


def test_a_long_retry_after_is_raised(service: Service, campaign: str, waits: list[float]) -> None:
    fault = Fault(429, {"Retry-After": "3600"}, {**BUSY, "status": 429, "code": "rate_limited"})
    with faulty(service.url, ADD, fault) as (url, _), Client(url, service.key) as client:
        with pytest.raises(RateLimited) as raised:
            client.add_task(campaign, agent="copywriter", prompt="Write.")
    assert (raised.value.retry_after, waits) == (3600, [])


def test_a_request_without_a_key_is_not_repeated_after_it_was_sent(service: Service, waits: list[float]) -> None:
    """The answer to a new webhook has its secret, so the request takes no idempotency key."""
    with (
        faulty(service.url, "/webhooks", Fault(loses_answer=True)) as (url, proxy),
        Client(url, service.admin_key) as client,
    ):
        with pytest.raises(TransportError, match="the connection broke"):
            client.add_webhook(url="http://127.0.0.1:9/hooks")
        assert (len(proxy.seen), waits) == (1, [])
        (added,) = client.list_webhooks().items
        client.remove_webhook(added.id)


def test_a_request_without_a_key_is_repeated_if_it_was_not_sent(waits: list[float]) -> None:
    with Client("http://127.0.0.1:1", retry=RetryPolicy(max_retries=2)) as client:
        with pytest.raises(TransportError, match="no connection"):
            client.add_webhook(url="http://127.0.0.1:9/hooks")
    assert len(waits) == 2


def test_a_locked_conversation_is_waited_for(service: Service, client: Client, campaign: str) -> None:
    """The service answers 503 with `retryable` while another transaction holds the conversation."""
    import threading

    import psycopg
    from dalsegno.sql import enqueue

    env = service.postgres
    held = threading.Event()

    def hold() -> None:
        with psycopg.connect(
            host=env["PGHOST"], user=env["PGUSER"], dbname=env["PGDATABASE"], password=env["PGPASSWORD"]
        ) as own:
            enqueue(own.cursor(), campaign=campaign, agent="copywriter", instance="locked", prompt="First.")
            held.set()
            refused.wait(30)

    refused = threading.Event()

    def note(response: httpx.Response) -> None:
        if response.status_code == 503:
            refused.set()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(30)
    http = httpx.Client(event_hooks={"response": [note]})
    with Client(service.url, service.key, http=http) as other:
        assert other.add_task(campaign, agent="copywriter", instance="locked", prompt="Second.").created
    holder.join()
    assert refused.is_set()


def test_a_rate_limit_of_the_service_is_waited_for(service: Service) -> None:
    limited = service.start("limited", {"DALSEGNO_HTTP__REQUESTS_PER_MINUTE": "60", **service.second_process})
    refusals: list[str] = []

    def note(response: httpx.Response) -> None:
        if response.status_code == 429:
            refusals.append(response.headers["retry-after"])

    http = httpx.Client(event_hooks={"response": [note]})
    with Client(limited, service.key, http=http) as client:
        for _ in range(80):
            client.list_campaigns(limit=1)
            if refusals:
                break
    assert refusals and int(refusals[0]) >= 1


def test_a_wrong_key_is_raised(service: Service) -> None:
    with Client(service.url, "dals_wrong") as client, pytest.raises(Unauthenticated) as raised:
        client.list_tasks()
    assert not raised.value.retryable


def test_an_answer_that_is_no_problem_document_is_an_error() -> None:
    error = ApiError.of(418, {}, b"<html>")
    assert (error.code, error.retryable, str(error)) == ("", False, "the service answered with status 418")


def test_retry_after_can_be_a_date() -> None:
    assert seconds("12") == 12
    assert seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert seconds("soon") is None


def test_each_request_that_takes_a_key_has_one() -> None:
    assert Request("POST", "/", takes_key=True).repeatable
    assert not Request("POST", "/").repeatable
    assert Request("GET", "/").repeatable
