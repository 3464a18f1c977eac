"""A proxy before the service that breaks chosen requests."""

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Fault:
    """Breaks one request. Without any of the fields, the connection ends before the service gets the request."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    problem: dict[str, object] | None = None
    # The service gets the request, and the client no answer.
    loses_answer: bool = False
    # The connection ends after so many events of the stream.
    cuts_after: int | None = None


@dataclass
class RequestRecord:
    method: str
    path: str
    headers: dict[str, str]


class Proxy:
    """Applies one fault to each request whose path contains `path`, in order; further requests pass."""

    def __init__(self, target: str, path: str, faults: list[Fault]) -> None:
        self.target, self.path, self.faults = urlsplit(target), path, faults
        self.seen: list[RequestRecord] = []
        self.lock = threading.Lock()

    def next_fault(self, request: RequestRecord) -> Fault | None:
        with self.lock:
            if self.path not in request.path:
                return None
            self.seen.append(request)
            return self.faults.pop(0) if self.faults else None

    def handle(self, client: socket.socket) -> None:
        head, _, body = read_until(client, b"\r\n\r\n").partition(b"\r\n\r\n")
        if not head:
            return
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += client.recv(65536)
        method, path, _ = first.split(" ")
        fault = self.next_fault(RequestRecord(method, path, headers))
        if fault and fault.status:
            client.sendall(refusal(fault))
        elif not fault or fault.loses_answer or fault.cuts_after:
            kept = [line for line in lines if not line.lower().startswith("connection:")]
            with socket.create_connection((self.target.hostname, self.target.port or 80)) as service:
                service.sendall("\r\n".join([first, *kept, "Connection: close", "", ""]).encode() + body)
                relay(service, client, fault)


def relay(service: socket.socket, client: socket.socket, fault: Fault | None) -> None:
    n_events = 0
    while piece := service.recv(65536):
        if fault and fault.loses_answer:
            continue
        for part in piece.splitlines(keepends=True):
            client.sendall(part)
            n_events += part.startswith(b"data: ")
            if fault and fault.cuts_after == n_events:
                client.sendall(b"\n")
                return


def refusal(fault: Fault) -> bytes:
    body = json.dumps(fault.problem).encode() if fault.problem else b"busy"
    kind = "application/problem+json" if fault.problem else "text/plain"
    headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close", **fault.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {fault.status} Refused\r\n{lines}\r\n".encode() + body


def read_until(client: socket.socket, mark: bytes) -> bytes:
    found = b""
    while mark not in found and (piece := client.recv(65536)):
        found += piece
    return found


@contextmanager
def faulty(target: str, path: str, *faults: Fault) -> Iterator[tuple[str, Proxy]]:
    proxy = Proxy(target, path, list(faults))

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                proxy.handle(self.request)
            except OSError:
                pass

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", proxy
        finally:
            server.shutdown()
