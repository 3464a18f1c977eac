//! Every action that the console knows, with and without its scope.

use std::{collections::BTreeSet, fs, path::Path};

use chrono::TimeDelta;
use dalsegno::{
    domain::{
        compactions::{self, AcceptedSummary, Cause},
        credentials::{self, PausedCredential},
        sessions, tasks,
    },
    operations::{self, Spec},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    scenery::Scenery,
    sign_in::{HTML, KEYS, form_token, key, open, sign_in},
};
use crate::{
    app::noon,
    conversations::world::TurnSettings,
    http::{
        client::{Reply, send},
        key_setup::ADMIN_KEY,
    },
};

/// An action with the page that offers it.
struct Case {
    operation: &'static str,
    page: String,
    /// Fields that a person fills in.
    fields: Vec<(&'static str, &'static str)>,
}

fn case(operation: &'static str, page: &str, fields: &[(&'static str, &'static str)]) -> Case {
    Case { operation, page: page.to_owned(), fields: fields.to_vec() }
}

/// Each action in an order in which the state of the scenery offers it.
fn cases(scenery: &Scenery, more: &More) -> Vec<Case> {
    let campaign = format!("/campaigns/{}", scenery.world.campaign.id);
    let (brief, flows) = (format!("{campaign}?part=brief"), format!("/flows/{}", scenery.flow));
    let task = format!("/tasks/{}", scenery.waiting);
    let session = format!("/sessions/{}", scenery.session_id);
    vec![
        case("change_budget", &campaign, &[("money:micros", "12.50"), ("number:tokens", "")]),
        case("add_post", &campaign, &[("text", "Three more parts.")]),
        case("edit_campaign", &brief, &[("brief", "Nine parts."), ("text:client_context", "")]),
        case("pause_campaign", &campaign, &[("reason", "lunch")]),
        case("resume_campaign", &campaign, &[]),
        case("pause_flow", &flows, &[]),
        case("resume_flow", &flows, &[]),
        case("cancel_flow", &flows, &[("reason", "late")]),
        case("retry_flow", &flows, &[("from", "write")]),
        case("change_task_priority", &task, &[("priority", "7")]),
        case("cancel_task", &task, &[("reason", "late")]),
        case("retry_task", &task, &[]),
        case("interrupt_session", &format!("/sessions/{}", more.running), &[("reason", "late")]),
        case("uncompact_session", &session, &[]),
        case("compact_session", &session, &[]),
        case("fork_session", &session, &[("instance", "second")]),
        case("rerun_turn", &format!("{session}/turns/1"), &[("times", "1")]),
        case("reset_session", &session, &[]),
        case("resume_queue", "/", &[]),
        case("resume_credential", "/", &[]),
        case("end_sign_in", "/sign-ins", &[]),
    ]
}

/// Things that only actions of this test need.
struct More {
    /// A session whose turn runs.
    running: Uuid,
}

impl More {
    async fn of(scenery: &Scenery) -> Self {
        let world = &scenery.world;
        let new = tasks::New { instance: "other", ..world.ask("Part 12.") };
        let task = world.add_new(&new).await.unwrap().task;
        let (_, begun) = world.begin(&task, world.lease(), TurnSettings::default()).await;
        let mut tx = world.pool.begin().await.unwrap();
        let session_id = scenery.session_id;
        let generation = sessions::next_generation(&mut *tx, session_id).await.unwrap();
        let (pins, refusals) = (json!([]), json!([{ "rung": "first", "refusals": [] }]));
        let accepted = AcceptedSummary {
            summary: "One part.",
            pins: &pins,
            rung: "retry",
            tokens_after: 9,
            flow: None,
            prompts: None,
        };
        let new = compactions::New {
            session_id,
            generation,
            parent: 0,
            from_seq: 1,
            to_seq: 2,
            cause: Cause::Auto,
            turn: 1,
            model: Some("sim-1"),
            tokens_before: 100,
            refusals: &refusals,
            node: None,
            accepted: Some(accepted),
        };
        compactions::insert(&mut *tx, &new, noon()).await.unwrap();
        compactions::apply(&mut tx, session_id, generation, noon()).await.unwrap();
        let paused = PausedCredential {
            name: "spare".to_owned(),
            until: noon() + TimeDelta::hours(1),
            why: "used up".to_owned(),
        };
        credentials::pause(&mut *tx, "claude", &paused).await.unwrap();
        tx.commit().await.unwrap();
        let path = "/v1/queues/turns/pause";
        scenery.send("POST", path, &json!({ "reason": "maintenance" })).await;
        Self { running: begun.session_id }
    }
}

/// The operations whose forms the source of the console has.
fn known() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let names = text.split("Action::of::<").skip(1);
                all.extend(names.map(|rest| snake_case(rest.split('>').next().unwrap())));
            }
        }
    }
    all
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

fn spec(operation: &str) -> &'static Spec {
    let found = operations::ALL.iter().find(|entry| entry.spec.id == operation);
    &found.unwrap_or_else(|| panic!("no operation {operation}")).spec
}

/// The hidden fields of the form that runs an operation; `None` if the page has no such form.
fn form<'a>(page: &'a str, operation: &str) -> Option<Vec<(&'a str, String)>> {
    let (_, form) = page.split_once(&format!("action=\"/do/{operation}\""))?;
    let form = form.split("</form>").next()?;
    let value = |tag: &'a str, name: &str| -> Option<&'a str> {
        tag.split_once(&format!("{name}=\""))?.1.split('"').next()
    };
    let hidden = form.split("<input").skip(1).filter(|tag| tag.contains("type=\"hidden\""));
    Some(
        hidden
            .filter_map(|tag| {
                Some((value(tag, "name")?, value(tag, "value")?.replace("&amp;", "&")))
            })
            .collect(),
    )
}

fn encoded(fields: &[(&str, String)]) -> String {
    let text = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let pair = |(name, value): &(&str, String)| format!("{}={}", text(name), text(value));
    fields.iter().map(pair).collect::<Vec<_>>().join("&")
}

impl Scenery {
    /// Sends a form of a page, with these fields in place of those of the same name.
    async fn send_form(&self, cookie: &str, operation: &str, fields: &[(&str, String)]) -> Reply {
        let origin = format!("http://{}", self.app.address);
        let headers = [
            ("Cookie", cookie),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Origin", &origin),
            HTML,
        ];
        let path = format!("/do/{operation}");
        send(self.app.address, "POST", &path, &headers, &encoded(fields)).await
    }
}

#[tokio::test]
async fn every_action_is_offered_and_run_with_its_scope_alone() {
    let scenery = Scenery::with(&KEYS).await;
    let more = More::of(&scenery).await;
    let app = &scenery.app;
    let (_, secret) = key(app, "ann", "read").await;
    let reader = sign_in(app, &secret).await;
    let admin = sign_in(app, ADMIN_KEY).await;
    let (_, secret) = key(app, "bob", "operate").await;
    let operator = sign_in(app, &secret).await;
    let cases = cases(&scenery, &more);
    let named: BTreeSet<String> = cases.iter().map(|case| case.operation.to_owned()).collect();
    assert!(named.is_subset(&known()), "{:?}", named.difference(&known()));
    // The pages of the other actions have tests of their own, with their own scenery.
    for operation in known().difference(&named) {
        let token = form_token(&open(app, "/", &reader).await.body);
        let refused = scenery.send_form(&reader, operation, &[("form_token", token)]).await;
        assert!(
            refused.status == 403 && refused.body.contains("missing_scope"),
            "{operation}: {refused:?}"
        );
    }
    for Case { operation, page, fields } in cases {
        let caller = if page == "/sign-ins" { &admin } else { &operator };
        let offered = open(app, &page, caller).await;
        let hidden = form(&offered.body, operation);
        let hidden = hidden.unwrap_or_else(|| panic!("{page} does not offer {operation}"));
        let own = fields.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let sent: Vec<_> = hidden.into_iter().chain(own).collect();
        // Without the scope: the page has no form, and the request is refused.
        let seen = open(app, &page, &reader).await;
        assert!(form(&seen.body, operation).is_none(), "{page} offers {operation} to a reader");
        let token = open(app, &format!("/tasks/{}", scenery.done), &reader).await;
        let token = token.body.split("name=\"form_token\" value=\"").nth(1).unwrap();
        let token = token.split('"').next().unwrap().to_owned();
        let mut stolen = sent.clone();
        for (name, value) in &mut stolen {
            if *name == "form_token" {
                value.clone_from(&token);
            }
        }
        let refused = scenery.send_form(&reader, operation, &stolen).await;
        assert!(
            refused.status == 403 && refused.body.contains("missing_scope"),
            "{operation}: {refused:?}"
        );
        assert!(!spec(operation).scopes.is_empty(), "{operation} needs a scope");
        let done = scenery.send_form(caller, operation, &sent).await;
        // The turn was made without a worker, so its call cannot be made again.
        let expected: &[u16] =
            if operation == "rerun_turn" { &[303, 404, 409, 422] } else { &[303] };
        assert!(expected.contains(&done.status), "{operation}: {done:?}");
        if done.status == 303 {
            let cookies = format!("{caller}; done={operation}");
            let next = open(app, "/", &cookies).await;
            let notice = format!("Done: {}.", operation.replace('_', " "));
            assert!(next.body.contains(&notice), "{operation}: {next:?}");
        }
    }
    let audit = scenery.get_json("/v1/audit?limit=200").await;
    let actions: BTreeSet<&str> =
        audit["items"].as_array().unwrap().iter().filter_map(|it| it["action"].as_str()).collect();
    for action in ["task.priority", "campaign.edit", "campaign.limit", "flow.retry"] {
        assert!(actions.contains(action), "{action} in {actions:?}");
    }
    let budget = scenery.get_json(&format!("/v1/campaigns/{}", scenery.world.campaign.id)).await;
    assert_eq!(budget["budget"]["limit"], json!({ "micros": 12_500_000, "tokens": null }));
    assert_eq!(budget["client_context"], Value::Null);
}
