"""Streams: events of tasks and of the feed, and that they resume without gap or repetition."""

from collections.abc import Mapping
from typing import Any, assert_type

import pytest
from dalsegno import AsyncClient, Client, NotFound
from dalsegno.event_data import TurnDoneData, TurnProgressData
from dalsegno.events import Event, EventReader

from faults import Fault, faulty
from service import Service

PROMPT = "Write about the harbour."


def check(events: list[Event]) -> None:
    assert [event.kind for event in events][:1] == ["task.queued"]
    assert events[-1].kind == "end" and events[-1].task is not None and events[-1].task.state == "done"
    numbers = [int(event.id.removesuffix(".end")) for event in events[:-1]]
    assert numbers == sorted(set(numbers))


def test_a_stream_shows_the_answer_and_ends_with_the_task(client: Client, campaign: str) -> None:
    prompt = "[[sim: words 400]] Write about the harbour."
    events = list(client.stream(campaign=campaign, agent="copywriter", instance="streamed", prompt=prompt))
    check(events)
    written = "".join(event.text for event in events)
    task = events[-1].task
    assert task and written == task.result


def test_the_text_of_a_short_answer_comes_with_the_end(client: Client, campaign: str) -> None:
    events = list(client.stream(campaign=campaign, agent="copywriter", instance="short", prompt="Write."))
    assert events[-1].task and "".join(event.text for event in events) == events[-1].task.result


async def test_a_stream_shows_the_answer_with_asyncio(async_client: AsyncClient, campaign: str) -> None:
    stream = async_client.stream(campaign=campaign, agent="copywriter", instance="streamed", prompt="Write.")
    check([event async for event in stream])


def test_a_broken_stream_resumes(service: Service, campaign: str) -> None:
    cuts = Fault(cuts_after=1), Fault(cuts_after=2), Fault(502)
    with faulty(service.url, "/events", *cuts) as (url, proxy), Client(url, service.key) as client:
        added = client.run(campaign=campaign, agent="copywriter", instance="broken", prompt=PROMPT)
        events = list(client.follow_task(added.id))
    check(events)
    positions = [seen.headers.get("last-event-id") for seen in proxy.seen]
    assert len(positions) == 4 and positions[0] is None and all(positions[1:])


async def test_a_broken_stream_resumes_with_asyncio(service: Service, campaign: str) -> None:
    with faulty(service.url, "/events", Fault(cuts_after=1), Fault()) as (url, proxy):
        async with AsyncClient(url, service.key) as client:
            added = await client.run(campaign=campaign, agent="copywriter", instance="broken", prompt=PROMPT)
            check([event async for event in client.follow_task(added.id)])
    assert [seen.headers.get("last-event-id") is None for seen in proxy.seen] == [True, False, False]


def test_a_stream_continues_after_an_event(client: Client, campaign: str) -> None:
    added = client.run(campaign=campaign, agent="copywriter", prompt="Write.")
    events = list(client.follow_task(added.id))
    rest = list(client.follow_task(added.id, last_event_id=events[1].id))
    assert [event.id for event in rest] == [event.id for event in events[2:]]
    assert list(client.follow_task(added.id, last_event_id=events[-1].id)) == []


def test_the_feed_can_be_left(client: Client, campaign: str) -> None:
    added = client.run(campaign=campaign, agent="copywriter", prompt="Write.")
    for event in client.follow_feed(after=0, campaign_id=campaign, kinds="turn.done"):
        if event.feed and event.feed.task_id == added.id:
            break
    assert event.kind == "turn.done" and event.data["turn"] >= 1


def test_the_data_of_an_event_has_the_type_of_its_kind(client: Client, campaign: str) -> None:
    added = client.run(campaign=campaign, agent="copywriter", prompt="Write.")
    events = list(client.follow_task(added.id))
    done = [data for event in events if (data := event.data_of("turn.done"))]
    assert_type(done, list[TurnDoneData])
    assert [data["turn"] for data in done] == [added.turn]
    assert_type(events[0].data_of("turn.progress"), TurnProgressData | None)
    assert_type(events[0].data_of("a.kind.of.tomorrow"), Mapping[str, Any] | None)
    assert events[0].kind == "task.queued" and events[0].data_of("turn.done") is None
    assert events[0].data_of("task.queued") == events[0].data


def test_a_broken_feed_resumes(service: Service, own_campaign: str) -> None:
    with (
        faulty(service.url, "/feed", Fault(cuts_after=2), Fault(cuts_after=1)) as (url, proxy),
        Client(url, service.key) as client,
    ):
        client.run(campaign=own_campaign, agent="copywriter", prompt="Write.")
        numbers = []
        for event in client.follow_feed(after=0, campaign_id=own_campaign):
            numbers.append(int(event.id))
            if event.kind == "turn.done":
                break
    assert len(numbers) > 3 and numbers == sorted(set(numbers))
    assert [seen.headers.get("last-event-id") for seen in proxy.seen[:2]] == [None, str(numbers[1])]


def test_a_refused_stream_is_raised(client: Client) -> None:
    with pytest.raises(NotFound):
        next(client.follow_task("019aa2f1-0000-7000-8000-000000000000"))


def test_events_are_read_from_any_pieces() -> None:
    stream = (
        b': ping\n\nevent: turn.progress\r\nid: 7\r\ndata: {"id": 7, "created_at": "2026-11-20T12:00:00Z",\r\n'
        b'data: "kind": "turn.progress", "data": {"text": "K\xc3\xb6ln"}}\r\n\r\n'
    )
    for size in (1, 2, 7, len(stream)):
        reader = EventReader()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        events = [event for piece in pieces for event in reader.read(piece)]
        assert [(event.id, event.kind, event.text) for event in events] == [("7", "turn.progress", "Köln")]
