//! A receiver changes from one secret to the next and misses no delivery.

use chrono::{TimeDelta, Utc};
use dalsegno::domain::webhooks;

use super::WebhookSetup;

#[tokio::test]
async fn two_secrets_sign_during_a_rotation_and_one_after_it() {
    let setup = WebhookSetup::new().await;
    let upkeep = setup.fixture.upkeep().await;
    let rotate = async |overlap| {
        let mut tx = setup.fixture.pool.begin().await.unwrap();
        let rotated =
            webhooks::rotate(&mut tx, setup.webhook.id, overlap, Utc::now()).await.unwrap();
        tx.commit().await.unwrap();
        (rotated.secret.expose().to_owned(), rotated.webhook.rotates_until)
    };
    let received = async || {
        let (_, delivery) = setup.end_a_task().await;
        setup.delivered(delivery.id).await;
        setup.receiver.received().pop().unwrap()
    };
    let (second, until) = rotate(TimeDelta::hours(1)).await;
    assert!(until.is_some());
    let one = received().await;
    assert_eq!(one.header("webhook-signature").split(' ').count(), 2);
    assert!(one.is_signed_with(&setup.secret) && one.is_signed_with(&second));
    // At most two secrets are valid: the next rotation ends an earlier one.
    let (third, _) = rotate(TimeDelta::hours(1)).await;
    let one = received().await;
    assert!(!one.is_signed_with(&setup.secret), "{one:?}");
    assert!(one.is_signed_with(&second) && one.is_signed_with(&third));
    let expire = "update dalsegno.webhook_secrets set valid_until = now() - interval '1 minute' where valid_until is not null";
    sqlx::query(expire).execute(&setup.fixture.pool).await.unwrap();
    let one = received().await;
    assert_eq!(one.header("webhook-signature").split(' ').count(), 1);
    assert!(!one.is_signed_with(&second) && one.is_signed_with(&third));
    let (fourth, until) = rotate(TimeDelta::zero()).await;
    assert_eq!(until, None);
    let one = received().await;
    assert!(!one.is_signed_with(&third) && one.is_signed_with(&fourth));
    upkeep.stop().await;
}
