"""Receives webhooks when tasks end, and verifies their signatures. Requires only the standard library.

    WEBHOOK_SECRET=whsec_... PORT=8000 python receiver.py
"""

import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEYS = [base64.b64decode(secret.removeprefix("whsec_")) for secret in os.environ["WEBHOOK_SECRET"].split()]
TOLERANCE_SECS = 300
MAX_BODY_BYTES = 1 << 20
# A delivery can arrive twice. Use a database if that matters.
seen = set()


def is_genuine(headers, body):
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE_SECS:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in KEYS]
    given = [part.removeprefix("v1,") for part in headers.get("webhook-signature", "").split() if part.startswith("v1,")]
    return any(hmac.compare_digest(one, other) for one in expected for other in given)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(min(length, MAX_BODY_BYTES))
        if not is_genuine(self.headers, body):
            return self.answer(401)
        # Answer quickly; do slow work afterwards.
        self.answer(204)
        message_id = self.headers["webhook-id"]
        if message_id not in seen:
            seen.add(message_id)
            event = json.loads(body)
            print(event["type"], event["data"].get("task_id"), event["data"].get("result"), flush=True)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8000"))), Receiver)
    print("listening", flush=True)
    server.serve_forever()
