//! `dalsegno credential`.

use serde_json::json;

use super::Fixture;

#[tokio::test]
async fn paused_credentials_are_listed_and_resumed() {
    let fixture = Fixture::new().await;
    let none = fixture.run(&["credential", "resume", "main"]).await;
    assert_eq!(none.code, 3, "{none:?}");
    assert!(none.stderr.contains("credential ls"), "{none:?}");
    let rest = "insert into dalsegno.paused_credentials (provider, credential, until, why)
                values ('claude', 'main', now() + interval '1 hour', 'it is used up')";
    sqlx::query(rest).execute(&fixture.world.pool).await.unwrap();
    let listed = fixture.run(&["credential", "ls"]).await;
    assert!(listed.stdout.contains("main (not configured here)"), "{listed:?}");
    assert!(listed.stdout.contains("it is used up"), "{listed:?}");
    let resumed = fixture.json(&["credential", "resume", "main"]).await;
    assert_eq!(resumed, json!({ "name": "main", "woken_tasks": 0 }));
    assert!(!fixture.run(&["credential", "ls"]).await.stdout.contains("main"));
}

#[tokio::test]
async fn the_provider_selects_between_credentials_of_the_same_name() {
    let fixture = Fixture::new().await;
    let rest = "insert into dalsegno.paused_credentials (provider, credential, until, why)
                select unnest(array['claude', 'ollama']), 'main', now() + interval '1 hour', 'it is used up'";
    sqlx::query(rest).execute(&fixture.world.pool).await.unwrap();
    let unclear = fixture.run(&["credential", "resume", "main"]).await;
    assert_eq!(unclear.code, 5, "{unclear:?}");
    assert!(unclear.has("(claude, ollama)") && unclear.has("--provider"), "{unclear:?}");
    fixture.json(&["credential", "resume", "main", "--provider", "ollama"]).await;
    let listed = fixture.json(&["credential", "ls"]).await;
    let listed: Vec<_> = listed.as_array().unwrap().iter().map(|it| &it["provider"]).collect();
    assert_eq!(listed, ["claude"]);
}
