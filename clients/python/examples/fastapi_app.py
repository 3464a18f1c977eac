"""A shop with FastAPI: orders with tasks in one transaction, the answer while it is written, and the result by webhook.

    pip install fastapi uvicorn "sqlalchemy[asyncio]" "psycopg[binary]"
    uvicorn fastapi_app:app

CAMPAIGN is the id of the campaign; PGHOST ... name the database of the service; DALSEGNO_URL and DALSEGNO_API_KEY are read by
the client; WEBHOOK_SECRET is the secret of a webhook for /hooks.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dalsegno import AsyncClient, WebhookError, verify_webhook
from dalsegno.sql import EnqueueError, enqueue_sqlalchemy
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "fastapi_orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    what: Mapped[str]
    task_id: Mapped[str | None]
    result: Mapped[str | None]


class NewOrder(BaseModel):
    what: str


engine = create_async_engine("postgresql+psycopg://")
dalsegno = AsyncClient()


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with dalsegno:
        yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=201)
async def add_order(new: NewOrder) -> dict[str, object]:
    """Stores the order and its task: both, or neither."""
    async with AsyncSession(engine) as session, session.begin():
        order = Order(what=new.what)
        session.add(order)
        await session.flush()
        try:
            task = await session.run_sync(
                enqueue_sqlalchemy,
                campaign=os.environ["CAMPAIGN"],
                agent="copywriter",
                prompt=new.what,
                idempotency_key=f"fastapi-order-{order.id}",
            )
        except EnqueueError as error:
            raise HTTPException(409, str(error)) from error
        order.task_id = task.task_id
        return {"id": order.id, "task_id": task.task_id}


@app.get("/orders/{order_id}")
async def show_order(order_id: int) -> dict[str, object]:
    order = await find_order(order_id)
    return {"id": order.id, "result": order.result}


@app.get("/orders/{order_id}/answer")
async def stream_answer(order_id: int) -> StreamingResponse:
    """Sends the answer while it is written."""
    order = await find_order(order_id)

    async def answer() -> AsyncIterator[str]:
        async for event in dalsegno.follow_task(str(order.task_id)):
            yield event.text
            if event.task and event.task.error:
                yield event.task.error

    return StreamingResponse(answer(), media_type="text/plain")


@app.post("/hooks", status_code=204)
async def receive(request: Request) -> Response:
    try:
        event = verify_webhook(await request.body(), request.headers, os.environ["WEBHOOK_SECRET"])
    except WebhookError as error:
        raise HTTPException(401, str(error)) from error
    if event.type == "task.done":
        # The same result again, if a delivery arrives twice.
        change = update(Order).where(Order.task_id == event.task_id).values(result=event.data["result"])
        async with engine.begin() as connection:
            await connection.execute(change)
    return Response(status_code=204)


async def find_order(order_id: int) -> Order:
    async with AsyncSession(engine) as session:
        order = (await session.execute(select(Order).where(Order.id == order_id))).scalar_one_or_none()
    if order is None:
        raise HTTPException(404, f"there is no order {order_id}")
    return order
