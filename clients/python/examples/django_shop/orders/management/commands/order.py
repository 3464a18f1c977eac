"""Stores an order and adds a task for it in one transaction."""

from typing import Any

from dalsegno import Client
from dalsegno.sql import EnqueueError, enqueue
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection, transaction

from orders.models import Order


class Command(BaseCommand):
    help = "Orders a text."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what")
        parser.add_argument("--wait", action="store_true", help="Wait for the text, and store it with the order.")

    def handle(self, *_: Any, what: str, wait: bool, **__: Any) -> None:
        try:
            order = self.add(what)
        except EnqueueError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"order {order.pk} has task {order.task_id}")
        if wait:
            with Client() as client:
                task = client.wait(str(order.task_id))
            order.result = task.result
            order.save()
            self.stdout.write(f"task {task.id} is {task.state}: {task.result or task.error}")

    @transaction.atomic
    def add(self, what: str) -> Order:
        order = Order.objects.create(what=what)
        with connection.cursor() as cursor:
            task = enqueue(
                cursor,
                campaign=settings.CAMPAIGN,
                agent="copywriter",
                prompt=what,
                idempotency_key=f"django-order-{order.pk}",
            )
        order.task_id = task.task_id
        order.save()
        return order
