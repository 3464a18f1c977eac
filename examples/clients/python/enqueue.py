"""Stores an order, adds a task for an agent, and waits for the result.

    python enqueue.py sql "Write part one."     order and task in one transaction (pip install -r requirements.txt)
    python enqueue.py http "Write part one."    requires only the standard library; the order is in an SQLite file

CAMPAIGN is the id of the campaign. For SQL, DATABASE_URL or libpq's PGHOST ... name the service's database; for HTTP,
DALSEGNO_URL is the address of the service, and DALSEGNO_API_KEY an API key, if the service requires one.
"""

import json
import os
import sqlite3
import sys
import time
import urllib.request

CAMPAIGN = os.environ["CAMPAIGN"]
AGENT = "copywriter"


def by_sql(prompt):
    import psycopg

    with psycopg.connect(os.environ.get("DATABASE_URL", ""), autocommit=True) as connection:
        connection.execute(
            "create table if not exists orders"
            " (id bigint generated always as identity primary key, what text not null, task_id uuid)"
        )
        # One transaction: both rows exist after it, or neither does.
        with connection.transaction():
            insert = "insert into orders (what) values (%s) returning id"
            (order_id,) = connection.execute(insert, [prompt]).fetchone()
            (task_id,) = connection.execute(
                "select task_id from dalsegno.add_task(%s, %s, %s, idempotency_key => %s)",
                [CAMPAIGN, AGENT, prompt, f"python-order-{order_id}"],
            ).fetchone()
            connection.execute("update orders set task_id = %s where id = %s", [task_id, order_id])
        while True:
            look = "select state, result, error, ended_at from dalsegno.tasks where id = %s"
            state, result, error, ended_at = connection.execute(look, [task_id]).fetchone()
            if ended_at is not None:
                return task_id, state, result or error
            time.sleep(0.5)


def by_http(prompt):
    orders = sqlite3.connect("orders.sqlite3")
    orders.execute("create table if not exists orders (id integer primary key, what text not null, task_id text)")
    # Store the order first. After any failure, its id is the idempotency key with which the request can be repeated.
    with orders:
        order_id = orders.execute("insert into orders (what) values (?)", [prompt]).lastrowid
    task = request(
        f"/v1/campaigns/{CAMPAIGN}/tasks",
        body={"agent": AGENT, "prompt": prompt},
        headers={"Idempotency-Key": f"python-http-order-{order_id}"},
    )
    with orders:
        orders.execute("update orders set task_id = ? where id = ?", [task["id"], order_id])
    while task["ended_at"] is None:
        task = request(f"/v1/tasks/{task['id']}?wait=25s")
    return task["id"], task["state"], task["result"] or task["error"]


def request(path, body=None, headers=None):
    headers = {"Content-Type": "application/json", **(headers or {})}
    if key := os.environ.get("DALSEGNO_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    url = os.environ.get("DALSEGNO_URL", "http://127.0.0.1:7770") + path
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.load(answer)


if __name__ == "__main__":
    way, prompt = sys.argv[1:]
    task_id, state, text = {"sql": by_sql, "http": by_http}[way](prompt)
    print(f"task {task_id} is {state}: {text}")
