//! `/v1/logins`.

use serde_json::json;

use super::Fixture;

#[tokio::test]
async fn paused_credentials_are_listed_and_resumed() {
    let logins = "[{ name = \"main\", kind = \"api_key\", variable = \"NOT_READ_HERE\" }]";
    let fixture = Fixture::with(&[("claude.credentials", logins)]).await;
    let rest = "insert into dalsegno.resting_logins (provider, login, until, why)
                values ('claude', 'main', now() + interval '1000 years', 'it is used up')";
    sqlx::query(rest).execute(&fixture.world.pool).await.unwrap();
    let listed = fixture.get("/v1/logins").await.expect(200);
    let main = &listed["items"][0];
    assert_eq!((&main["login"], &main["is_configured"]), (&json!("main"), &json!(true)));
    assert_eq!((&main["why"], &main["sessions"]), (&json!("it is used up"), &json!(0)));
    let resumed = fixture.post("/v1/logins/main/resume", &json!({})).await.expect(200);
    assert_eq!(resumed, json!({ "login": "main", "woken_tasks": 0 }));
    let listed = fixture.get("/v1/logins").await.expect(200);
    assert_eq!(listed["items"][0]["rests_until"], json!(null));
    fixture.post("/v1/logins/main/resume", &json!({})).await.problem(404, "login_not_resting");
}
