"""Stores an order and adds a task for it in one transaction, with SQLAlchemy.

    pip install sqlalchemy "psycopg[binary]"
    python enqueue_sqlalchemy.py "Write part one."

CAMPAIGN is the id of the campaign; PGHOST ... name the database of the service.
"""

import os
import sys

from dalsegno.sql import enqueue_sqlalchemy
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "sqlalchemy_orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    what: Mapped[str]
    task_id: Mapped[str | None]


engine = create_engine("postgresql+psycopg://")
Base.metadata.create_all(engine)

with Session(engine) as session, session.begin():
    order = Order(what=sys.argv[1])
    session.add(order)
    session.flush()
    task = enqueue_sqlalchemy(
        session,
        campaign=os.environ["CAMPAIGN"],
        agent="copywriter",
        prompt=order.what,
        idempotency_key=f"sqlalchemy-order-{order.id}",
    )
    order.task_id = task.task_id
    print(f"order {order.id} has task {task.task_id}")
