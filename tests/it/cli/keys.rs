//! `dalsegno key`, and the keys that a service on a public address requires.

use serde_json::{Value, json};

use super::{Ground, Said, text};
use crate::{
    app::eventually,
    http::client::{Reply, send},
    service::Service,
};

const ADMIN_KEY: &str = "0123456789-the-key-of-the-configuration";
const REACHABLE: [&str; 4] = ["serve", "--json", "--set", "http.listen=0.0.0.0:0"];

impl Ground {
    /// Starts a service on all addresses, which may refuse to listen.
    fn reachable(&self, more: &[(&str, &str)]) -> Service {
        let url = self.world.url();
        let given = [&[("DATABASE_URL", url.as_str())], more].concat();
        Service::begin(self.path(), &REACHABLE, &given)
    }
}

async fn get(service: &Service, key: &str, path: &str) -> Reply {
    let header = format!("Bearer {key}");
    // The service listens on each address of this machine.
    let address = ([127, 0, 0, 1], service.address.port()).into();
    send(address, "GET", path, &[("Authorization", &header)], "").await
}

fn lines(said: &Said) -> Vec<&str> {
    said.stdout.lines().collect()
}

#[tokio::test]
async fn a_key_is_made_listed_rotated_and_revoked() {
    let ground = Ground::new().await;
    let create = ["key", "create", "ci", "--scope", "read", "--scope", "enqueue"];
    let said = ground.run(&[&create[..], &["--expires-in", "90d"]].concat()).await;
    assert_eq!((said.code, lines(&said).len()), (0, 1), "{said:?}");
    let secret = lines(&said)[0].to_owned();
    assert!(secret.starts_with("dals_") && secret.len() == 82, "{said:?}");
    assert!(said.stderr.contains("only time") && !said.stderr.contains(&secret), "{said:?}");
    let again = ground.run(&create).await;
    assert_eq!((again.code, again.has("key rotate ci")), (5, true), "{again:?}");

    let listed = ground.run(&["key", "ls"]).await;
    for words in ["ci", "read,enqueue", "usable", "cli:"] {
        assert!(listed.has(words), "{words}: {listed:?}");
    }
    assert!(!listed.has(&secret[18..]), "{listed:?}");
    let successor = ground.json(&["key", "rotate", "ci", "--overlap", "1h"]).await;
    let keys = ground.json(&["key", "ls"]).await;
    assert_eq!((&keys[0]["id"], &keys[1]["replaced_by"]), (&successor["id"], &successor["id"]));
    assert_ne!(text(&successor["secret"]), secret);
    let short = text(&keys[0]["id"]).rsplit('-').next().unwrap();
    for after in [short, text(&keys[0]["id"])] {
        let rest = ground.json(&["key", "ls", "--after", after]).await;
        assert_eq!((&rest[0]["id"], rest.as_array().unwrap().len()), (&keys[1]["id"], 1));
    }
    let listed = ground.run(&["key", "ls"]).await;
    assert!(listed.has("replaced"), "{listed:?}");
    // The name selects the latest key.
    let last = ground.json(&["key", "rotate", "ci", "--overlap", "0s"]).await;
    let handle = text(&last["handle"]);
    let one = ground.json(&["key", "revoke", handle]).await;
    assert_eq!((one.as_array().unwrap().len(), &one[0]["id"]), (1, &last["id"]));
    let rest = ground.json(&["key", "revoke", "ci"]).await;
    assert_eq!(rest.as_array().unwrap().len(), 2, "{rest}");
    let keys = ground.json(&["key", "ls"]).await;
    assert!(keys.as_array().unwrap().iter().all(|key| !key["revoked_at"].is_null()), "{keys}");
    let gone = ground.run(&["key", "revoke", "ci"]).await;
    assert_eq!((gone.code, gone.has("key ls")), (3, true), "{gone:?}");
}

#[tokio::test]
async fn all_keys_of_a_name_are_revoked_under_one_idempotency_key() {
    let ground = Ground::new().await;
    ground.json(&["key", "create", "ci", "--scope", "read"]).await;
    ground.json(&["key", "rotate", "ci"]).await;
    let revoked = ground.json(&["key", "revoke", "ci", "--idempotency-key", "leak"]).await;
    assert_eq!(revoked.as_array().unwrap().len(), 2, "{revoked}");
    let keys = ground.json(&["key", "ls"]).await;
    assert!(keys.as_array().unwrap().iter().all(|key| !key["revoked_at"].is_null()), "{keys}");
    // The same change again is known.
    let id = text(&revoked[0]["id"]);
    let again = ground.run(&["key", "revoke", id, "--idempotency-key", "leak"]).await;
    assert!(again.code == 0 && again.has("used before"), "{again:?}");
}

#[tokio::test]
async fn a_key_is_bound_to_a_campaign() {
    let ground = Ground::new().await;
    let campaign = ground.world.campaign.id.to_string();
    let create = ["key", "create", "shop", "--scope", "enqueue", "--campaign", &campaign];
    let said = ground.run(&create).await;
    assert!(said.code == 0 && said.stderr.contains(&format!("bound to {campaign}")), "{said:?}");
    let all = ground.run(&["key", "create", "eyes", "--scope", "read"]).await;
    assert!(all.stderr.contains("all campaigns"), "{all:?}");
    let listed = ground.run(&["key", "ls"]).await;
    assert!(listed.has("CAMPAIGNS") && listed.has(&campaign) && listed.has(" all "), "{listed:?}");
    let keys = ground.json(&["key", "ls"]).await;
    assert_eq!((&keys[1]["campaigns"], &keys[0]["campaigns"]), (&json!([campaign]), &Value::Null));
    let nobody = "00000000-0000-0000-0000-000000000000";
    let said = ground.run(&["key", "create", "x", "--scope", "read", "--campaign", nobody]).await;
    assert_eq!((said.code, said.has("no campaign")), (3, true), "{said:?}");
}

#[tokio::test]
async fn mistakes_are_told_with_what_to_write() {
    let ground = Ground::new().await;
    for (arguments, words) in [
        (&["key", "create", "ci"][..], "--scope"),
        (&["key", "create", "ci", "--scope", "write"], "read, enqueue, operate, admin or mcp"),
        (&["key", "create", "a b", "--scope", "read"], "letters, digits"),
        (&["key", "create", "ci", "--scope", "read", "--expires-in", "90"], "90d"),
        (&["key", "create", "ci", "--scope", "read", "--expires-in", "0s"], "give a future time"),
        (&["audit", "ls", "--since", "yesterday"], "two hours ago"),
    ] {
        let said = ground.run(arguments).await;
        assert_eq!((said.code, said.has(words)), (2, true), "{arguments:?}: {said:?}");
    }
}

#[tokio::test]
async fn a_service_that_others_can_reach_asks_for_a_key_and_does_not_start_without_one() {
    let ground = Ground::new().await;
    let mut refused = ground.reachable(&[]);
    assert_eq!(refused.exit_code().await, 2, "{}", refused.log());
    for words in ["no API key exists", "dalsegno key create", "http.admin_key_file"] {
        assert!(refused.log().contains(words), "{words}: {}", refused.log());
    }
    // A revoked key does not count.
    ground.json(&["key", "create", "old", "--scope", "read"]).await;
    ground.json(&["key", "revoke", "old"]).await;
    let mut refused = ground.reachable(&[]);
    assert_eq!(refused.exit_code().await, 2, "{}", refused.log());

    let key = ground.json(&["key", "create", "ci", "--scope", "read"]).await;
    let mut service = ground.reachable(&[]);
    service.listening().await;
    service.ready().await;
    get(&service, text(&key["secret"]), "/v1/campaigns").await.expect(200);
    get(&service, "", "/v1/campaigns").await.problem(401, "unauthenticated");
    get(&service, "x", "/v1/campaigns").await.problem(401, "bad_key");
    get(&service, text(&key["secret"]), "/v1/keys").await.problem(403, "missing_scope");
}

#[tokio::test]
async fn no_secret_is_anywhere_but_where_it_was_asked_for() {
    let ground = Ground::new().await;
    let file = ground.path().join("admin.key");
    std::fs::write(&file, format!("{ADMIN_KEY}\n")).unwrap();
    let made = ground.json(&["key", "create", "boss", "--scope", "admin"]).await;
    let secret = text(&made["secret"]);
    let file = file.to_str().unwrap();
    let loud = ("DALSEGNO_LOG__FILTER", "debug,sqlx=trace");
    let mut service = ground.reachable(&[("DALSEGNO_HTTP__ADMIN_KEY_FILE", file), loud]);
    service.listening().await;
    service.ready().await;
    for key in [secret, ADMIN_KEY] {
        get(&service, key, "/v1/keys").await.expect(200);
    }
    get(&service, &format!("{secret}0"), "/v1/keys").await.problem(401, "bad_key");
    let used = eventually("its use is written down", async || {
        let keys = ground.json(&["key", "ls"]).await;
        (!keys[0]["last_used_at"].is_null()).then(|| keys.to_string())
    });
    let config = ["config", "print", "--set", &format!("http.admin_key_file={file}")];
    let printed = ground.run(&config).await;
    assert!(printed.has("http.admin_key") && printed.has("http.require_key"), "{printed:?}");
    let audit = ground.json(&["audit", "ls"]).await.to_string();
    let rows = "select (select string_agg(k::text, ' ') from dalsegno.api_keys as k)
                    || (select string_agg(a::text, ' ') from dalsegno.audit as a)";
    let rows: String = sqlx::query_scalar(rows).fetch_one(&ground.world.pool).await.unwrap();
    let seen = [service.log(), used.await, printed.stdout, audit, rows].join("\n");
    for hidden in [&secret[18..], &ADMIN_KEY[11..]] {
        assert!(!seen.contains(hidden), "{hidden} is in {seen}");
    }
    assert!(service.log().contains("sqlx"), "the log was too quiet to show anything");
}

#[tokio::test]
async fn a_key_of_the_configuration_has_to_be_hard_to_guess() {
    let ground = Ground::new().await;
    for bad in ["short-key-of-31-characters-only", "a key with spaces of forty characters ..."] {
        let set = format!("http.admin_key={bad}");
        let said = ground.run(&["config", "check", "--set", &set]).await;
        assert_eq!((said.code, said.has("openssl rand -hex 32")), (2, true), "{said:?}");
        assert!(!said.has(bad), "{said:?}");
    }
    let set = format!("http.admin_key={ADMIN_KEY}");
    let said = ground.run(&["config", "check", "--set", &set]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let both = ["--set", "http.require_key=true", "--set", "http.allow_unauthenticated=true"];
    let said = ground.run(&[&["config", "check"][..], &both].concat()).await;
    assert_eq!((said.code, said.has("one of the two")), (2, true), "{said:?}");
    let printed = ground.json(&["config", "print", "--set", "http.require_key=true"]).await;
    let found = printed.as_array().unwrap().iter().find(|key| key["key"] == "http.require_key");
    assert_eq!(found.map(|key| &key["value"]), Some(&json!(true)), "{printed}");
}

/// With `--json`, the output is one object for programs.
#[tokio::test]
async fn a_program_gets_the_key_with_its_text() {
    let ground = Ground::new().await;
    let made: Value = ground.json(&["key", "create", "ci", "--scope", "operate"]).await;
    assert_eq!((&made["name"], &made["scopes"]), (&json!("ci"), &json!(["operate"])));
    assert!(text(&made["secret"]).starts_with(&format!("dals_{}_", text(&made["handle"]))));
}
