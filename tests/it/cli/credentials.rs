//! `dalsegno credential`.

use serde_json::json;

use super::Ground;

#[tokio::test]
async fn credentials_that_rest_are_listed_and_resumed() {
    let ground = Ground::new().await;
    let none = ground.run(&["credential", "resume", "main"]).await;
    assert_eq!(none.code, 3, "{none:?}");
    assert!(none.stderr.contains("credential ls"), "{none:?}");
    let rest = "insert into dalsegno.paused_credentials (provider, credential, until, why)
                values ('claude', 'main', now() + interval '1 hour', 'it is used up')";
    sqlx::query(rest).execute(&ground.world.pool).await.unwrap();
    let listed = ground.run(&["credential", "ls"]).await;
    assert!(listed.stdout.contains("main (not configured here)"), "{listed:?}");
    assert!(listed.stdout.contains("it is used up"), "{listed:?}");
    let resumed = ground.json(&["credential", "resume", "main"]).await;
    assert_eq!(resumed, json!({ "name": "main", "woken_tasks": 0 }));
    assert!(!ground.run(&["credential", "ls"]).await.stdout.contains("main"));
}

#[tokio::test]
async fn of_two_providers_with_one_name_of_a_credential_one_is_resumed() {
    let ground = Ground::new().await;
    let rest = "insert into dalsegno.paused_credentials (provider, credential, until, why)
                select unnest(array['claude', 'ollama']), 'main', now() + interval '1 hour', 'it is used up'";
    sqlx::query(rest).execute(&ground.world.pool).await.unwrap();
    let unclear = ground.run(&["credential", "resume", "main"]).await;
    assert_eq!(unclear.code, 5, "{unclear:?}");
    assert!(unclear.has("(claude, ollama)") && unclear.has("--provider"), "{unclear:?}");
    ground.json(&["credential", "resume", "main", "--provider", "ollama"]).await;
    let listed = ground.json(&["credential", "ls"]).await;
    let listed: Vec<_> = listed.as_array().unwrap().iter().map(|it| &it["provider"]).collect();
    assert_eq!(listed, ["claude"]);
}
