"""The Python code of the documents, run as it is written there."""

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dalsegno
import psycopg
import pytest
from dalsegno import AsyncClient, Client

from service import Service

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "clients/python/README.md", ROOT / "docs/how-to/clients.md"]
SECRET = "whsec_" + base64.b64encode(b"a key of exactly thirty-two bytes").decode()


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def message(task_id: str) -> SimpleNamespace:
    body = (
        b'{"type": "task.done", "timestamp": "2026-11-20T12:00:00Z", "data": {"task_id": "%b", "result": "Told."}}'
        % task_id.encode()
    )
    now = str(int(time.time()))
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.digest(key, f"1.{now}.".encode() + body, hashlib.sha256)).decode()
    return SimpleNamespace(
        body=body, headers={"webhook-id": "1", "webhook-timestamp": now, "webhook-signature": f"v1,{signature}"}
    )


@pytest.fixture
def names(service: Service, client: Client, own_campaign: str) -> Iterator[dict[str, Any]]:
    env, request, stored = service.postgres, message("019aa2f4"), []
    with psycopg.connect(
        host=env["PGHOST"], user=env["PGUSER"], dbname=env["PGDATABASE"], password=env["PGPASSWORD"]
    ) as connection:
        connection.execute("create temp table orders (what text)")
        yield {
            **vars(dalsegno),
            "dalsegno": dalsegno,
            "client": client,
            "campaign": own_campaign,
            "connection": connection,
            "request": request,
            "body": request.body,
            "headers": request.headers,
            "store": lambda *given: stored.append(given),
        }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path, service: Service, names: dict[str, Any]) -> None:
    found = blocks(page)
    assert len(found) >= 3
    for block in found:
        code = block.replace("http://127.0.0.1:7770", service.url).replace("dals_...", service.key)
        code = code.replace("019aa2f1-...", names["campaign"]).replace("whsec_...", SECRET)
        exec(compile(code, page.name, "exec"), names)


def test_the_methods_that_the_pages_name_exist() -> None:
    named = {name for page in PAGES for name in re.findall(r"\bclient\.(\w+)", page.read_text())}
    assert len(named) >= 6
    for kind in (Client, AsyncClient):
        missing = {name for name in named if not hasattr(kind, name)}
        # Those in camel case belong to the other client.
        assert not {name for name in missing if name.islower()}
