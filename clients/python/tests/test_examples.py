"""The examples, run unchanged against a service."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from dalsegno import Client

from service import Service

ROOT = Path(os.environ.get("DALSEGNO_ROOT", Path(__file__).parents[3]))
EXAMPLES = ROOT / "clients/python/examples"
SHELL = ROOT / "examples/clients/shell/enqueue.sh"
NOWHERE = "019aa2f1-0000-7000-8000-000000000000"
Environment = dict[str, str]


@pytest.fixture
def environment(service: Service) -> Environment:
    return {
        **os.environ,
        **service.postgres,
        "DALSEGNO_URL": service.url,
        "DALSEGNO_API_KEY": service.key,
        "CAMPAIGN": service.campaign,
        "NO_PROXY": "127.0.0.1",
    }


def run(environment: Environment, *command: str | Path, folder: Path = EXAMPLES) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def rows(environment: Environment, table: str) -> list[tuple[Any, ...]]:
    options = {"host": "PGHOST", "user": "PGUSER", "dbname": "PGDATABASE", "password": "PGPASSWORD"}
    with psycopg.connect(**{name: environment[variable] for name, variable in options.items()}) as own:  # type: ignore[arg-type]
        found = own.execute(f"select task_id::text, what from {table} order by id").fetchall()
    return found


@pytest.mark.parametrize(
    ("program", "table"),
    [
        ("enqueue_psycopg.py", "orders"),
        ("enqueue_asyncpg.py", "orders"),
        ("enqueue_sqlalchemy.py", "sqlalchemy_orders"),
    ],
)
def test_a_driver_adds_a_task_with_its_own_row(environment: Environment, client: Client, program: str, table: str) -> None:
    prompt = f"[[sim: say From {program}.]]"
    ran = run(environment, sys.executable, program, prompt)
    assert ran.returncode == 0, ran.stderr
    (task_id,) = re.findall(r"has task (\S+)", ran.stdout)
    assert client.wait(task_id).result == f"From {program}."
    before = rows(environment, table)
    assert before[-1] == (task_id, prompt)
    refused = run({**environment, "CAMPAIGN": NOWHERE}, sys.executable, program, prompt)
    assert refused.returncode != 0 and "there is no campaign" in refused.stderr
    assert rows(environment, table) == before


def test_django_orders_in_one_transaction(environment: Environment) -> None:
    folder = EXAMPLES / "django_shop"
    manage = [sys.executable, "-B", "manage.py"]
    migrated = run(environment, *manage, "migrate", "--verbosity", "0", folder=folder)
    assert migrated.returncode == 0, migrated.stderr
    ran = run(environment, *manage, "order", "[[sim: say From Django.]]", "--wait", folder=folder)
    assert ran.returncode == 0 and "is done: From Django." in ran.stdout, ran
    before = rows(environment, "orders_order")
    refused = run({**environment, "CAMPAIGN": NOWHERE}, *manage, "order", "Never.", folder=folder)
    assert refused.returncode != 0 and "there is no campaign" in refused.stderr
    assert rows(environment, "orders_order") == before


def test_curl_and_jq_add_a_task_and_wait(environment: Environment) -> None:
    first, again = (run(environment, SHELL, "shell-1", "[[sim: say From the shell.]]") for _ in range(2))
    assert first.returncode == 0 and first.stdout.endswith("is done: From the shell.\n"), first
    assert again.stdout == first.stdout
    conflict = run(environment, SHELL, "shell-1", "Another.")
    assert conflict.returncode == 1 and "\nidempotency_conflict: " in conflict.stderr, conflict
    failed = run(environment, SHELL, "shell-2", "[[sim: error 400]]")
    assert failed.returncode == 1 and " is failed: " in failed.stdout, failed


@pytest.fixture
def shop(service: Service, environment: Environment, unused_tcp_port: int) -> Iterator[httpx.Client]:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    with Client(service.url, service.admin_key) as admin:
        webhook = admin.add_webhook(url=f"{url}/hooks", kinds=["task.done"], campaign_id=service.campaign)
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "fastapi_app:app",
            "--port",
            str(unused_tcp_port),
            "--log-level",
            "warning",
        ]
        process = subprocess.Popen(command, cwd=EXAMPLES, env={**environment, "WEBHOOK_SECRET": webhook.secret})
        with httpx.Client(base_url=url, timeout=60) as shop:
            eventually(lambda: is_open(shop))
            yield shop
        process.terminate()
        process.wait(30)
        admin.remove_webhook(webhook.id)


def is_open(shop: httpx.Client) -> bool:
    try:
        return shop.get("/openapi.json").is_success
    except httpx.TransportError:
        return False


def eventually(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.05)


def test_fastapi_orders_streams_and_receives(shop: httpx.Client) -> None:
    order = shop.post("/orders", json={"what": "[[sim: words 200]] Write about the harbour."}).json()
    answer = shop.get(f"/orders/{order['id']}/answer").text
    assert "About the harbour" in answer
    eventually(lambda: bool(shop.get(f"/orders/{order['id']}").json()["result"]))
    assert shop.get(f"/orders/{order['id']}").json()["result"] == answer
    assert shop.post("/hooks", content=b"{}").status_code == 401
    assert shop.get("/orders/999999/answer").status_code == 404
