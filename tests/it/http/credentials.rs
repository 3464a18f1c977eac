//! `/v1/credentials`.

use serde_json::json;

use super::Fixture;

#[tokio::test]
async fn paused_credentials_are_listed_and_resumed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "secret").unwrap();
    let credentials =
        format!("[{{ name = \"main\", kind = \"api_key\", file = {:?} }}]", file.path());
    let fixture = Fixture::with(&[("claude.credentials", &credentials)]).await;
    let rest = "insert into dalsegno.paused_credentials (provider, credential, until, why)
                values ('claude', 'main', now() + interval '1000 years', 'it is used up')";
    sqlx::query(rest).execute(&fixture.world.pool).await.unwrap();
    let listed = fixture.get("/v1/credentials").await.expect(200);
    let main = &listed["items"][0];
    assert_eq!((&main["name"], &main["is_configured"]), (&json!("main"), &json!(true)));
    assert_eq!((&main["why"], &main["sessions"]), (&json!("it is used up"), &json!(0)));
    let resumed = fixture.post("/v1/credentials/main/resume", &json!({})).await.expect(200);
    assert_eq!(resumed, json!({ "name": "main", "woken_tasks": 0 }));
    let listed = fixture.get("/v1/credentials").await.expect(200);
    assert_eq!(listed["items"][0]["paused_until"], json!(null));
    fixture
        .post("/v1/credentials/main/resume", &json!({}))
        .await
        .problem(404, "credential_not_paused");
}
