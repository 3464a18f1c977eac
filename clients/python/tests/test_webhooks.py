"""Signatures of messages that the service has sent."""

import base64
import time

import pytest
from dalsegno import Client, WebhookError, verify_webhook

from receiver import receiver
from service import Service

OTHER = "whsec_" + base64.b64encode(b"another key of thirty-two bytes.").decode()


def test_a_message_of_the_service_is_genuine(service: Service, client: Client, campaign: str) -> None:
    with receiver() as (url, messages), Client(service.url, service.admin_key) as admin:
        webhook = admin.add_webhook(url=url, kinds=["task.done"], campaign_id=campaign)
        task = client.run(campaign=campaign, agent="copywriter", instance="told", prompt="[[sim: say Told.]]")
        headers, body = messages.get(timeout=30)
        event = verify_webhook(body, headers, webhook.secret)
        assert (event.type, event.task_id, event.data["result"]) == ("task.done", task.id, "Told.")
        assert event.timestamp == task.ended_at

        for changed in (body + b" ", body.replace(b"Told.", b"Lies.")):
            with pytest.raises(WebhookError, match="does not match"):
                verify_webhook(changed, headers, webhook.secret)
        with pytest.raises(WebhookError, match="does not match"):
            verify_webhook(body, headers, OTHER)
        with pytest.raises(WebhookError, match="300 s off"):
            verify_webhook(body, headers, webhook.secret, now=time.time() + 301)
        with pytest.raises(WebhookError, match="missing"):
            verify_webhook(body, {}, webhook.secret)

        # While a secret is rotated, either of both is sufficient.
        rotated = admin.rotate_webhook(webhook.id)
        admin.test_webhook(webhook.id)
        headers, body = messages.get(timeout=30)
        for secret in (webhook.secret, rotated.secret, [OTHER, rotated.secret]):
            assert verify_webhook(body, headers, secret).type == "webhook.test"
        admin.remove_webhook(webhook.id)


def test_a_wrong_secret_is_refused() -> None:
    headers = {"webhook-id": "1", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,"}
    with pytest.raises(ValueError, match="whsec_"):
        verify_webhook(b"{}", headers, "secret")
