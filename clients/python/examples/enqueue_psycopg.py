"""Stores an order and adds a task for it in one transaction, with psycopg.

    pip install "psycopg[binary]"
    python enqueue_psycopg.py "Write part one."

CAMPAIGN is the id of the campaign; DATABASE_URL or PGHOST ... name the database of the service.
"""

import os
import sys

import psycopg
from dalsegno.sql import enqueue

with psycopg.connect(os.environ.get("DATABASE_URL", ""), autocommit=True) as connection:
    connection.execute(
        "create table if not exists orders"
        " (id bigint generated always as identity primary key, what text not null, task_id uuid)"
    )
    with connection.transaction(), connection.cursor() as cursor:
        (order_id,) = cursor.execute("insert into orders (what) values (%s) returning id", [sys.argv[1]]).fetchone()  # type: ignore[misc]
        task = enqueue(
            cursor,
            campaign=os.environ["CAMPAIGN"],
            agent="copywriter",
            prompt=sys.argv[1],
            idempotency_key=f"psycopg-order-{order_id}",
        )
        cursor.execute("update orders set task_id = %s where id = %s", [task.task_id, order_id])
    print(f"order {order_id} has task {task.task_id}")
