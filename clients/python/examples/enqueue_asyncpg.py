"""Stores an order and adds a task for it in one transaction, with asyncpg.

    pip install asyncpg
    python enqueue_asyncpg.py "Write part one."

CAMPAIGN is the id of the campaign; DATABASE_URL or PGHOST ... name the database of the service.
"""

import asyncio
import os
import sys

import asyncpg
from dalsegno.sql import enqueue_asyncpg


async def main(prompt: str) -> None:
    connection = await asyncpg.connect(os.environ.get("DATABASE_URL"))
    await connection.execute(
        "create table if not exists orders"
        " (id bigint generated always as identity primary key, what text not null, task_id uuid)"
    )
    async with connection.transaction():
        order_id = await connection.fetchval("insert into orders (what) values ($1) returning id", prompt)
        task = await enqueue_asyncpg(
            connection,
            campaign=os.environ["CAMPAIGN"],
            agent="copywriter",
            prompt=prompt,
            idempotency_key=f"asyncpg-order-{order_id}",
        )
        await connection.execute("update orders set task_id = $1 where id = $2", task.task_id, order_id)
    await connection.close()
    print(f"order {order_id} has task {task.task_id}")


asyncio.run(main(sys.argv[1]))
