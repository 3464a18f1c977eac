from collections.abc import AsyncIterator, Iterator

import pytest
from dalsegno import AsyncClient, Client

from service import Service


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.stop()


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.key) as client:
        yield client


@pytest.fixture
async def async_client(service: Service) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(service.url, service.key) as client:
        yield client


@pytest.fixture
def campaign(service: Service) -> str:
    return service.campaign


@pytest.fixture
def own_campaign(client: Client) -> str:
    """A campaign without other tasks."""
    return client.create_campaign(name="Another series").id
