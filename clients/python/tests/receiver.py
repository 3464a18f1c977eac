"""A receiver that keeps the messages it gets."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Message = tuple[dict[str, str], bytes]


@contextmanager
def receiver() -> Iterator[tuple[str, "queue.Queue[Message]"]]:
    messages: queue.Queue[Message] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            messages.put((dict(self.headers), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/hooks", messages
        finally:
            server.shutdown()
