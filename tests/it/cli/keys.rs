//! `dalsegno key`, and the keys that a service on a public address requires.

use serde_json::{Value, json};

use super::{CommandOutput, Fixture, text};
use crate::{
    app::eventually,
    http::client::{Reply, send},
    service::Service,
};

const ADMIN_KEY: &str = "0123456789-the-key-of-the-configuration";
const REACHABLE: [&str; 4] = ["serve", "--json", "--set", "http.listen=0.0.0.0:0"];

impl Fixture {
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

fn lines(output: &CommandOutput) -> Vec<&str> {
    output.stdout.lines().collect()
}

#[tokio::test]
async fn an_empty_list_says_so_and_how_an_entry_begins() {
    let fixture = Fixture::new().await;
    for (list, words) in [
        (["sign-in", "ls"], "no sign-ins within 30 days: a browser signs in with an API key"),
        (["key", "ls"], "no API keys: `dalsegno key create NAME --scope read` makes one"),
        (["flow", "ls"], "no flows: `dalsegno flow templates`"),
        (["erasure", "ls"], "no erasures: "),
    ] {
        let output = fixture.run(&list).await;
        assert!(output.code == 0 && output.stderr.contains(words), "{list:?}: {output:?}");
        let output = fixture.run(&[&list[..], &["--json"]].concat()).await;
        assert_eq!((output.json(), output.stderr.as_str()), (json!([]), ""), "{list:?}");
    }
    for (list, words) in [
        (&["job", "ls", "--state", "dead"][..], "no jobs match\n"),
        (&["budget", "ls", "--owner", "agent"], "no budgets match\n"),
        (&["audit", "ls", "--actor", "nobody"], "no entries match\n"),
    ] {
        let output = fixture.run(list).await;
        assert!(output.code == 0 && output.stderr.ends_with(words), "{list:?}: {output:?}");
    }
}

#[tokio::test]
async fn a_key_is_created_listed_rotated_and_revoked() {
    let fixture = Fixture::new().await;
    let create = ["key", "create", "ci", "--scope", "read", "--scope", "enqueue"];
    let output = fixture.run(&[&create[..], &["--expires-in", "90d"]].concat()).await;
    assert_eq!((output.code, lines(&output).len()), (0, 1), "{output:?}");
    let secret = lines(&output)[0].to_owned();
    assert!(secret.starts_with("dals_") && secret.len() == 82, "{output:?}");
    assert!(output.stderr.contains("only time") && !output.stderr.contains(&secret), "{output:?}");
    let again = fixture.run(&create).await;
    assert_eq!((again.code, again.has("key rotate ci")), (5, true), "{again:?}");

    let listed = fixture.run(&["key", "ls"]).await;
    for words in ["ci", "read,enqueue", "usable", " on the command line of "] {
        assert!(listed.has(words), "{words}: {listed:?}");
    }
    assert!(!listed.has(&secret[18..]), "{listed:?}");
    let successor = fixture.json(&["key", "rotate", "ci", "--overlap", "1h"]).await;
    let keys = fixture.json(&["key", "ls"]).await;
    assert_eq!((&keys[0]["id"], &keys[1]["replaced_by"]), (&successor["id"], &successor["id"]));
    assert_ne!(text(&successor["secret"]), secret);
    let short = text(&keys[0]["id"]).rsplit('-').next().unwrap();
    for after in [short, text(&keys[0]["id"])] {
        let rest = fixture.json(&["key", "ls", "--after", after]).await;
        assert_eq!((&rest[0]["id"], rest.as_array().unwrap().len()), (&keys[1]["id"], 1));
    }
    let listed = fixture.run(&["key", "ls"]).await;
    assert!(listed.has("replaced"), "{listed:?}");
    // The name selects the latest key.
    let last = fixture.json(&["key", "rotate", "ci", "--overlap", "0s"]).await;
    let handle = text(&last["handle"]);
    let one = fixture.json(&["key", "revoke", handle]).await;
    assert_eq!((one.as_array().unwrap().len(), &one[0]["id"]), (1, &last["id"]));
    let rest = fixture.json(&["key", "revoke", "ci"]).await;
    assert_eq!(rest.as_array().unwrap().len(), 2, "{rest}");
    let keys = fixture.json(&["key", "ls"]).await;
    assert!(keys.as_array().unwrap().iter().all(|key| !key["revoked_at"].is_null()), "{keys}");
    let gone = fixture.run(&["key", "revoke", "ci"]).await;
    assert_eq!((gone.code, gone.has("key ls")), (3, true), "{gone:?}");
}

#[tokio::test]
async fn all_keys_with_a_name_are_revoked_under_one_idempotency_key() {
    let fixture = Fixture::new().await;
    fixture.json(&["key", "create", "ci", "--scope", "read"]).await;
    fixture.json(&["key", "rotate", "ci"]).await;
    let revoked = fixture.json(&["key", "revoke", "ci", "--idempotency-key", "leak"]).await;
    assert_eq!(revoked.as_array().unwrap().len(), 2, "{revoked}");
    let keys = fixture.json(&["key", "ls"]).await;
    assert!(keys.as_array().unwrap().iter().all(|key| !key["revoked_at"].is_null()), "{keys}");
    // The same change again is known.
    let id = text(&revoked[0]["id"]);
    let again = fixture.run(&["key", "revoke", id, "--idempotency-key", "leak"]).await;
    assert!(again.code == 0 && again.has("used before"), "{again:?}");
}

#[tokio::test]
async fn a_key_is_bound_to_a_campaign() {
    let fixture = Fixture::new().await;
    let campaign = fixture.world.campaign.id.to_string();
    let create = ["key", "create", "shop", "--scope", "enqueue", "--campaign", &campaign];
    let output = fixture.run(&create).await;
    assert!(
        output.code == 0 && output.stderr.contains(&format!("bound to {campaign}")),
        "{output:?}"
    );
    let all = fixture.run(&["key", "create", "eyes", "--scope", "read"]).await;
    assert!(all.stderr.contains("all campaigns"), "{all:?}");
    let listed = fixture.run(&["key", "ls"]).await;
    assert!(
        listed.has("CAMPAIGNS")
            && listed.has(&campaign[campaign.len() - 6..])
            && listed.has(" all "),
        "{listed:?}"
    );
    let keys = fixture.json(&["key", "ls"]).await;
    assert_eq!((&keys[1]["campaigns"], &keys[0]["campaigns"]), (&json!([campaign]), &Value::Null));
    let unknown = "00000000-0000-0000-0000-000000000000";
    let output =
        fixture.run(&["key", "create", "x", "--scope", "read", "--campaign", unknown]).await;
    assert_eq!((output.code, output.has("no campaign")), (3, true), "{output:?}");
}

#[tokio::test]
async fn invalid_key_options_are_refused_with_advice() {
    let fixture = Fixture::new().await;
    for (arguments, words) in [
        (&["key", "create", "ci"][..], "--scope"),
        (&["key", "create", "ci", "--scope", "write"], "read, enqueue, operate, admin or mcp"),
        (&["key", "create", "a b", "--scope", "read"], "letters, digits"),
        (&["key", "create", "ci", "--scope", "read", "--expires-in", "90"], "90d"),
        (&["key", "create", "ci", "--scope", "read", "--expires-in", "0s"], "give a future time"),
        (&["audit", "ls", "--since", "yesterday"], "two hours ago"),
    ] {
        let output = fixture.run(arguments).await;
        assert_eq!((output.code, output.has(words)), (2, true), "{arguments:?}: {output:?}");
    }
}

#[tokio::test]
async fn a_public_service_requires_a_key_and_does_not_start_without_one() {
    let fixture = Fixture::new().await;
    let mut refused = fixture.reachable(&[]);
    assert_eq!(refused.exit_code().await, 2, "{}", refused.log());
    for words in ["no API key exists", "dalsegno key create", "http.admin_key_file"] {
        assert!(refused.log().contains(words), "{words}: {}", refused.log());
    }
    // A revoked key does not count.
    fixture.json(&["key", "create", "old", "--scope", "read"]).await;
    fixture.json(&["key", "revoke", "old"]).await;
    let mut refused = fixture.reachable(&[]);
    assert_eq!(refused.exit_code().await, 2, "{}", refused.log());

    let key = fixture.json(&["key", "create", "ci", "--scope", "read"]).await;
    let mut service = fixture.reachable(&[]);
    service.listening().await;
    service.ready().await;
    get(&service, text(&key["secret"]), "/v1/campaigns").await.expect(200);
    get(&service, "", "/v1/campaigns").await.problem(401, "unauthenticated");
    get(&service, "x", "/v1/campaigns").await.problem(401, "bad_key");
    get(&service, text(&key["secret"]), "/v1/keys").await.problem(403, "missing_scope");
}

#[tokio::test]
async fn secrets_appear_only_in_the_output_that_created_them() {
    let fixture = Fixture::new().await;
    let file = fixture.path().join("admin.key");
    std::fs::write(&file, format!("{ADMIN_KEY}\n")).unwrap();
    let made = fixture.json(&["key", "create", "boss", "--scope", "admin"]).await;
    let secret = text(&made["secret"]);
    let file = file.to_str().unwrap();
    let loud = ("DALSEGNO_LOG__FILTER", "debug,sqlx=trace");
    let mut service = fixture.reachable(&[("DALSEGNO_HTTP__ADMIN_KEY_FILE", file), loud]);
    service.listening().await;
    service.ready().await;
    for key in [secret, ADMIN_KEY] {
        get(&service, key, "/v1/keys").await.expect(200);
    }
    get(&service, &format!("{secret}0"), "/v1/keys").await.problem(401, "bad_key");
    let used = eventually("the last use is stored", async || {
        let keys = fixture.json(&["key", "ls"]).await;
        (!keys[0]["last_used_at"].is_null()).then(|| keys.to_string())
    });
    let config = ["config", "print", "--set", &format!("http.admin_key_file={file}")];
    let printed = fixture.run(&config).await;
    assert!(printed.has("http.admin_key") && printed.has("http.require_key"), "{printed:?}");
    let audit = fixture.json(&["audit", "ls"]).await.to_string();
    let rows = "select (select string_agg(k::text, ' ') from dalsegno.api_keys as k)
                    || (select string_agg(a::text, ' ') from dalsegno.audit as a)";
    let rows: String = sqlx::query_scalar(rows).fetch_one(&fixture.world.pool).await.unwrap();
    let seen = [service.log(), used.await, printed.stdout, audit, rows].join("\n");
    for hidden in [&secret[18..], &ADMIN_KEY[11..]] {
        assert!(!seen.contains(hidden), "{hidden} is in {seen}");
    }
    assert!(service.log().contains("sqlx"), "the log has too few lines to prove anything");
}

#[tokio::test]
async fn a_configured_key_must_be_hard_to_guess() {
    let fixture = Fixture::new().await;
    for bad in ["short-key-of-31-characters-only", "a key with spaces of forty characters ..."] {
        let set = format!("http.admin_key={bad}");
        let output = fixture.run(&["config", "check", "--set", &set]).await;
        assert_eq!((output.code, output.has("openssl rand -hex 32")), (2, true), "{output:?}");
        assert!(!output.has(bad), "{output:?}");
    }
    let set = format!("http.admin_key={ADMIN_KEY}");
    let output = fixture.run(&["config", "check", "--set", &set]).await;
    assert_eq!(output.code, 0, "{output:?}");
    let both = ["--set", "http.require_key=true", "--set", "http.allow_unauthenticated=true"];
    let output = fixture.run(&[&["config", "check"][..], &both].concat()).await;
    assert_eq!((output.code, output.has("one of the two")), (2, true), "{output:?}");
    let printed = fixture.json(&["config", "print", "--set", "http.require_key=true"]).await;
    let found = printed.as_array().unwrap().iter().find(|key| key["key"] == "http.require_key");
    assert_eq!(found.map(|key| &key["value"]), Some(&json!(true)), "{printed}");
}

/// With `--json`, the output is one object for programs.
#[tokio::test]
async fn with_json_the_key_is_printed_as_one_object() {
    let fixture = Fixture::new().await;
    let made: Value = fixture.json(&["key", "create", "ci", "--scope", "operate"]).await;
    assert_eq!((&made["name"], &made["scopes"]), (&json!("ci"), &json!(["operate"])));
    assert!(text(&made["secret"]).starts_with(&format!("dals_{}_", text(&made["handle"]))));
}
