//! `dalsegno login`.

use serde_json::json;

use super::Fixture;

#[tokio::test]
async fn paused_credentials_are_listed_and_resumed() {
    let fixture = Fixture::new().await;
    let none = fixture.run(&["login", "resume", "main"]).await;
    assert_eq!(none.code, 3, "{none:?}");
    assert!(none.stderr.contains("login ls"), "{none:?}");
    let rest = "insert into dalsegno.resting_logins (provider, login, until, why)
                values ('claude', 'main', now() + interval '1 hour', 'it is used up')";
    sqlx::query(rest).execute(&fixture.world.pool).await.unwrap();
    let listed = fixture.run(&["login", "ls"]).await;
    assert!(listed.stdout.contains("main (not configured here)"), "{listed:?}");
    assert!(listed.stdout.contains("it is used up"), "{listed:?}");
    let resumed = fixture.json(&["login", "resume", "main"]).await;
    assert_eq!(resumed, json!({ "login": "main", "woken_tasks": 0 }));
    assert!(!fixture.run(&["login", "ls"]).await.stdout.contains("main"));
}

#[tokio::test]
async fn the_provider_selects_between_credentials_of_the_same_name() {
    let fixture = Fixture::new().await;
    let rest = "insert into dalsegno.resting_logins (provider, login, until, why)
                select unnest(array['claude', 'ollama']), 'main', now() + interval '1 hour', 'it is used up'";
    sqlx::query(rest).execute(&fixture.world.pool).await.unwrap();
    let unclear = fixture.run(&["login", "resume", "main"]).await;
    assert_eq!(unclear.code, 5, "{unclear:?}");
    assert!(unclear.has("(claude, ollama)") && unclear.has("--provider"), "{unclear:?}");
    fixture.json(&["login", "resume", "main", "--provider", "ollama"]).await;
    let listed = fixture.json(&["login", "ls"]).await;
    let listed: Vec<_> = listed.as_array().unwrap().iter().map(|it| &it["provider"]).collect();
    assert_eq!(listed, ["claude"]);
}
