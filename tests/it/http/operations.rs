//! The list of operations: each has a route, a scope, a part of the document, an audit line if it changes data, and a
//! command or a reason for none.

use std::collections::BTreeSet;

use dalsegno::{
    http::scopes::{self, RequiredScope},
    operations::{self, ALL, Command, Entry, Spec},
};
use serde_json::{Value, json};

use super::{Fixture, client::send, routes::registered};

fn has_command(words: &str) -> bool {
    let mut command = dalsegno::cli::command();
    words.split(' ').all(|word| match command.find_subcommand(word).cloned() {
        Some(found) => {
            command = found;
            true
        }
        None => false,
    })
}

const AUDIT: &str = "an audit action, or a reason for none, exactly if it changes";

const KEY: &str = "an idempotency key exactly if it changes and shows no secret";

fn has_key(about: &Value) -> bool {
    let parameters = about["parameters"].as_array();
    parameters.is_some_and(|all| all.iter().any(|one| one["name"] == "Idempotency-Key"))
}

/// Returns the faults of an operation's definition.
fn missing(spec: &Spec, routes: &BTreeSet<(&'static str, String)>) -> Vec<&'static str> {
    let document: Value = serde_json::from_str(dalsegno::http::document()).unwrap();
    let method = spec.method.as_str();
    let about = &document["paths"][spec.path][method.to_lowercase()];
    let has = [
        (
            KEY,
            has_key(about)
                == (spec.key_chars.is_some() || spec.action.is_some() && !spec.has_secret),
        ),
        ("a route", routes.contains(&(method, spec.path.to_owned()))),
        ("a scope", matches!(scopes::need(method, spec.path), Some(RequiredScope::Any([_, ..])))),
        ("a description", about["operationId"] == *spec.id),
        ("a sentence", about["summary"].as_str().is_some_and(|words| words.ends_with('.'))),
        (
            AUDIT,
            match (spec.action, spec.unaudited) {
                (None, None) => method == "GET",
                (None, Some(reason)) => method != "GET" && reason.len() > 10,
                (Some(_), reason) => method != "GET" && reason.is_none(),
            },
        ),
        (
            "a command, or a reason for none",
            match spec.command {
                Command::Named(words) => has_command(words),
                Command::Without(reason) => reason.len() > 10,
            },
        ),
    ];
    has.into_iter().filter(|(_, has)| !has).map(|(what, _)| what).collect()
}

#[tokio::test]
async fn each_operation_has_route_scope_description_and_a_command_or_a_reason_for_none() {
    let fixture = Fixture::new().await;
    let routes = registered(&fixture.app.router);
    let mut ids = BTreeSet::new();
    for Entry { spec, .. } in ALL {
        assert!(ids.insert(spec.id), "{}: the name is not unique", spec.id);
        assert_eq!(missing(spec, &routes), [""; 0], "{} lacks a field", spec.id);
    }
    assert!(ids.len() >= 9, "{ids:?}");
    let good = operations::find("POST", "/v1/schedules/{name}/pause").unwrap().spec;
    for (bad, what) in [
        (Spec { path: "/v1/schedules/{name}/lose", ..good }, "a route"),
        (Spec { id: "lose_schedule", ..good }, "a description"),
        (Spec { action: None, ..good }, AUDIT),
        (Spec { has_secret: true, ..good }, KEY),
        (Spec { action: None, unaudited: Some("no"), ..good }, AUDIT),
        (Spec { unaudited: Some("there are too many"), ..good }, AUDIT),
        (
            Spec { command: Command::Named("schedule lose"), ..good },
            "a command, or a reason for none",
        ),
        (Spec { command: Command::Without(""), ..good }, "a command, or a reason for none"),
    ] {
        assert!(missing(&bad, &routes).contains(&what), "the test does not see {what}");
    }
}

#[test]
fn path_parameters_are_fields_of_the_input() {
    for entry in ALL {
        let schema = serde_json::to_value((entry.input)().schema).unwrap();
        for name in entry.spec.path_fields() {
            let field = &schema["properties"][name];
            assert!(field.is_object(), "{} has no field `{name}`", entry.spec.id);
        }
        assert_eq!(schema["additionalProperties"], false, "{} takes any field", entry.spec.id);
    }
}

#[tokio::test]
async fn an_invalid_part_of_an_input_is_located_at_any_depth() {
    let fixture = Fixture::new().await;
    let long = format!("/v1/schedules/{}", "a".repeat(201));
    for (path, code, words) in [
        ("/v1/campaigns?limit=x", "bad_query", "the query parameter `limit` is not valid"),
        ("/v1/campaigns?limit=201", "bad_query", "from 1 to 200"),
        ("/v1/campaigns?limit=1&limit=2", "bad_query", "`limit` is given more than once"),
        (
            "/v1/campaigns?cursor=7",
            "bad_query",
            "`cursor` is not valid: not an id: use the whole UUID",
        ),
        (
            "/v1/campaigns?tags=a&tags=b",
            "bad_query",
            "`tags` is given more than once: give it once",
        ),
        ("/v1/ids?noun=campaign&text=", "bad_query", "`text` is not valid"),
        ("/v1/ids?noun=campaign&text=a%00", "bad_query", "U+0000"),
        ("/v1/ids?noun=task&text=Harbour", "bad_query", "`Harbour` is not an id"),
        ("/v1/ids?noun=person&text=Ann", "bad_query", "`noun` is not valid"),
        ("/v1/campaigns/none", "bad_id", "`none` is not an id: use the whole UUID"),
        ("/v1/campaigns/%00", "bad_id", "U+0000"),
        ("/v1/schedules/a%00", "bad_name", "U+0000"),
        (&long, "bad_name", "201 characters"),
    ] {
        let detail = fixture.get(path).await.problem(400, code);
        assert!(detail.contains(words), "{path}: {detail}");
    }
    let put = async |body: &str| {
        let headers = [("Content-Type", "application/json")];
        send(fixture.app.address, "PUT", "/v1/schedules/news", &headers, body).await
    };
    let task =
        json!({ "campaign_id": fixture.world.campaign.id, "agent": "copywriter", "prompt": "x" });
    let whole = json!({ "cron": "0 0 8 * * *", "task": task });
    put(&whole.to_string()).await.expect(200);
    for (field, value, pointer, words) in [
        ("cron", json!(7), "/cron", "expected a string"),
        ("catch_up_secs", json!("7"), "/catch_up_secs", "expected a whole number"),
        ("task", json!([1]), "/task", "expected an object"),
        ("crom", json!(7), "/crom", "unknown field `crom`: the body takes `cron`, `"),
        // The path contains it already.
        ("name", json!("other"), "", "the path already names `name`"),
    ] {
        let mut body = whole.clone();
        body[field] = value;
        let reply = put(&body.to_string()).await;
        let detail = reply.problem(422, "bad_field");
        assert!(detail.contains(words), "{detail}");
        let found = &reply.json()["errors"][0]["pointer"];
        assert!(pointer.is_empty() || found == pointer, "{reply:?}");
    }
    put("[1]").await.problem(422, "bad_field");
    put("{").await.problem(400, "bad_json");
}

#[tokio::test]
async fn ids_are_found_by_their_beginning_or_end_and_campaigns_by_name() {
    let fixture = Fixture::new().await;
    fixture.post("/v1/campaigns", &json!({ "name": "Spring" })).await.expect(201);
    let campaign = fixture.world.campaign.id.to_string();
    let task = fixture.world.add("Part one.").await.id.to_string();
    for (noun, id) in [("campaign", &campaign), ("task", &task)] {
        for text in [id, &id[..30], &id[24..]] {
            let found = fixture.get(&format!("/v1/ids?noun={noun}&text={text}")).await.expect(200);
            assert_eq!(found, json!({ "id": id }), "{text}");
        }
    }
    let found = fixture.get("/v1/ids?noun=campaign&text=Harbour").await.expect(200);
    assert_eq!(found["id"], json!(campaign));
    for (noun, text) in [("campaign", "Harb"), ("session", &task[24..])] {
        let path = format!("/v1/ids?noun={noun}&text={text}");
        let detail = fixture.get(&path).await.problem(404, "unknown_id");
        assert!(detail.contains(&format!("there is no {noun} {text}")), "{detail}");
    }
    let path = |newest: &str| format!("/v1/ids?noun=task&text={}&newest={newest}", &task[24..]);
    fixture.world.add("Part two.").await;
    fixture.get(&path("2")).await.expect(200);
    fixture.get(&path("1")).await.problem(404, "unknown_id");
    fixture.get(&path("0")).await.problem(400, "bad_query");
    let detail = fixture.get("/v1/ids?noun=campaign&text=0").await.problem(422, "ambiguous_id");
    assert!(detail.contains("Spring") && detail.contains(&campaign), "{detail}");
}
