"""The time that a provider adds to a call: its own time beside that of a plain streaming client with the same request."""

import http.client
import json
import statistics
import time

from servers import KEY


def print_latency(columns, count):
    """Prints medians in milliseconds, by the client's clock and by the ledger."""
    for column in columns:
        campaign = column.campaign()
        tasks = [column.run("When does it open?", campaign=campaign, session="none") for _ in range(count)]
        session = tasks[-1]["turns"][-1]["session_id"]
        body = json.loads(column.service.command("context", "show", session, "--raw"))
        took = [ledger(column, task)["total_ms"] for task in tasks]
        plain = plain_calls(column, body, count)
        service, client = statistics.median(took), statistics.median(plain)
        print(
            f"{column.title}: service {service:.1f} ms, plain client {client:.1f} ms, {service - client:+.1f} ms (medians of {count} calls)"
        )


def ledger(column, task):
    turn = task["turns"][-1]
    return column.service.call("GET", f"/v1/sessions/{turn['session_id']}/turns/{turn['number']}")["ledger"][0]


def plain_calls(column, body, count):
    path = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[column.kind]
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", column.server.port)
    times = []
    for _ in range(count):
        began = time.perf_counter()
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        while response.readline():
            pass
        times.append((time.perf_counter() - began) * 1000)
    return times
