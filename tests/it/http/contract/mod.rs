//! The service compared with its own document: valid and invalid requests for each operation, whose answers have to be
//! documented.
//!
//! A failure prints its seed; `DALSEGNO_TEST_SEED` repeats the run.

mod requests;
pub mod schema;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use dalsegno::domain::tasks::Task;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};

use self::{
    requests::{KnownValues, RequestGenerator, escaped, plain},
    schema::violations,
};
use super::{
    Fixture, Stream,
    client::{Reply, send},
};
use crate::conversations::world::{TurnSettings, World};

const REQUESTS: usize = if cfg!(feature = "chaos") { 2_000 } else { 60 };

#[derive(Debug, Clone)]
struct Operation {
    method: String,
    path: String,
    about: Value,
}

struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, path, headers, body } = self;
        write!(f, "{method} {path} {headers:?}\n{body}")
    }
}

fn document() -> Value {
    serde_json::from_str(dalsegno::http::document()).unwrap()
}

fn operations(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, about) in methods.as_object().unwrap() {
            let (method, path) = (method.to_uppercase(), path.clone());
            operations.push(Operation { method, path, about: about.clone() });
        }
    }
    operations
}

impl Operation {
    /// Builds a request that is valid, or invalid in one place.
    fn request(&self, make: &mut RequestGenerator<'_>) -> Request {
        let mut path = self.path.clone();
        let (mut query, mut headers) = (Vec::new(), Vec::new());
        for parameter in self.about["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            let place = parameter["in"].as_str().unwrap();
            if place != "path" && !make.chance(35) {
                continue;
            }
            let known = match name {
                // These would close or erase the campaign of the other requests.
                "id" if self.path.ends_with("/erasure") || self.path.ends_with("/close") => {
                    "erased"
                }
                // Id of a campaign, a task, a session or a job.
                "id" | "name" => self.path.split('/').nth(2).unwrap(),
                name => name,
            };
            let mut value = plain(&make.valid_value(&parameter["schema"], known));
            if make.chance(15) {
                value = make.odd_text();
            }
            match place {
                "path" if value.is_empty() => path = path.replace(&format!("{{{name}}}"), "x"),
                "path" => path = path.replace(&format!("{{{name}}}"), &escaped(&value)),
                "query" => query.push(format!("{}={}", escaped(name), escaped(&value))),
                "header" => {
                    let fits = |c: &char| !c.is_control();
                    headers.push((name.to_owned(), value.chars().filter(fits).collect()));
                }
                other => panic!("unsupported place of a parameter: {other}"),
            }
        }
        if make.chance(4) {
            query.push(format!("{}={}", escaped(&make.odd_text()), escaped(&make.odd_text())));
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let (body, kind) = self.body(make);
        headers.push(("Content-Type".to_owned(), kind));
        Request { method: self.method.clone(), path, headers, body }
    }

    fn body(&self, make: &mut RequestGenerator<'_>) -> (String, String) {
        let json = "application/json".to_owned();
        let Some(contents) = self.about["requestBody"]["content"].as_object() else {
            // A body that is neither documented nor read.
            let body = if make.chance(10) { make.any().to_string() } else { String::new() };
            return (body, json);
        };
        let schema = &contents["application/json"]["schema"];
        let example = &schema::resolve(make.document, schema)["example"];
        let good = match example.is_object() && make.chance(20) {
            true => example.clone(),
            false => make.valid_value(schema, "body"),
        };
        let value = if make.chance(45) { make.mutate(good) } else { good };
        let mut body = value.to_string();
        if let Some(lines) = value.as_array().filter(|_| contents.len() > 1 && make.chance(40)) {
            body = lines.iter().map(|line| format!("{line}\n")).collect();
            return (body, "application/x-ndjson".to_owned());
        }
        match make.rng.random_range(0..40) {
            0 => body.truncate(body.floor_char_boundary(body.len() / 2)),
            1 => body.push('}'),
            2 => body.clear(),
            3 => return (body, "text/plain".to_owned()),
            4 => return (body, "application/json; charset=utf-8".to_owned()),
            5 => body = make.odd_text(),
            _ => {}
        }
        (body, json)
    }

    fn is_stream(&self) -> bool {
        !self.about["responses"]["200"]["content"]["text/event-stream"].is_null()
    }

    /// Returns the faults of a response.
    fn faults(&self, document: &Value, reply: &Reply) -> Vec<String> {
        let promised = &self.about["responses"][reply.status.to_string()];
        if promised.is_null() {
            return vec![format!("the status {} is not in the document", reply.status)];
        }
        let mut faults = Vec::new();
        if reply.status == 500 || reply.status == 504 {
            faults.push(format!("the service failed with {}", reply.status));
        }
        let said = reply.head.lines().find_map(|line| line.strip_prefix("content-type: "));
        let Some(contents) = promised["content"].as_object() else {
            return if reply.body.is_empty() {
                faults
            } else {
                vec!["a body that is not in the document".to_owned()]
            };
        };
        let said = said.unwrap_or_default().split(';').next().unwrap_or_default();
        let Some(content) = contents.get(said) else {
            faults.push(format!("`{said}` is not in the document"));
            return faults;
        };
        if said.ends_with("json") {
            match serde_json::from_str(&reply.body) {
                Ok(value) => faults.extend(violations(document, &content["schema"], &value)),
                Err(error) => faults.push(format!("no JSON: {error}")),
            }
        }
        for (name, _) in promised["headers"].as_object().into_iter().flatten() {
            let name = name.to_ascii_lowercase();
            let is_sent = reply.head.lines().any(|line| line.starts_with(&format!("{name}: ")));
            // Other codes of the same status need no `Retry-After`, and most answers are not replays.
            if !is_sent && !["retry-after", "idempotent-replayed"].contains(&name.as_str()) {
                faults.push(format!("without the header {name}"));
            }
        }
        faults
    }
}

impl Fixture {
    async fn reply_to(&self, request: &Request, is_stream: bool) -> Option<Reply> {
        let address = self.app.address;
        if is_stream {
            let last = request.headers.iter().find(|(name, _)| name == "Last-Event-ID");
            let last = last.map(|(_, value)| value.as_str());
            // Streams that begin are checked in `feed` and `events`.
            return Stream::open(address, &request.path, last).await.err();
        }
        let headers: Vec<(&str, &str)> =
            request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Some(send(address, &request.method, &request.path, &headers, &request.body).await)
    }

    /// Creates things that requests can name.
    async fn known(&self) -> KnownValues {
        let task = self.world.turn("Part one.", TurnSettings::default()).await;
        let waiting = self.world.add("Part two.").await;
        let lane = format!("{}/copywriter/main", self.world.campaign.id);
        let put = json!({
            "cron": "0 0 7 * * *",
            "task": { "campaign_id": self.world.campaign.id, "agent": "copywriter", "prompt": "x" },
        });
        send(self.app.address, "PUT", "/v1/schedules/weekly", &[], &put.to_string())
            .await
            .expect(200);
        let campaign = json!(self.world.campaign.id);
        let bulk = json!({ "action": "retry", "filter": { "campaign_id": campaign } });
        // Without a worker, nothing is sent.
        let webhook = json!({ "url": "https://example.com/" });
        let webhook = self.post("/v1/webhooks", &webhook).await.expect(201);
        let bulk = self.post("/v1/bulk-actions", &bulk).await.expect(202);
        let edict =
            crate::memory::new(dalsegno::domain::memory::Kind::Edict, "tone", "Short sentences.");
        let edict = crate::memory::publish(&self.world, &edict, &crate::memory::OPERATOR).await;
        let item = edict.unwrap().item.id;
        let fact = crate::facts::state(&self.world.pool, "ann", ("Diet", "Eats fish.")).await;
        let fact = fact.unwrap().id;
        KnownValues(vec![
            ("agent", json!("copywriter")),
            ("instance", json!("main")),
            ("prompt", json!("Part three.")),
            ("cron", json!("0 30 7 * * Mon")),
            ("time_zone", json!("Europe/Berlin")),
            ("wait", json!("1ms")),
            ("wait", json!("0s")),
            ("kinds", json!("turn.done,task.queued")),
            ("idempotency_key", json!("one")),
            ("idempotency_key", json!("two")),
            ("Idempotency-Key", json!("three")),
            ("Last-Event-ID", json!("1")),
            ("campaign_id", campaign.clone()),
            ("campaigns", campaign),
            ("tasks", json!(waiting.id)),
            ("sessions", json!(task.session.id)),
            ("jobs", json!(waiting.job_id)),
            ("lanes", json!(lane)),
            ("lane", json!(lane)),
            ("queues", json!("turns")),
            ("queue", json!("turns")),
            ("groups", json!(self.world.campaign.id)),
            ("schedules", json!("weekly")),
            ("schedules", json!("cleanup")),
            ("bulk-actions", bulk["id"].clone()),
            ("webhooks", webhook["id"].clone()),
            ("item", json!(item)),
            ("users", json!("ann")),
            ("fact", json!(fact)),
            ("q", json!("sentences")),
            ("limit", json!(5)),
        ])
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment names the seed to repeat")]
fn seed() -> u64 {
    let given = std::env::var("DALSEGNO_TEST_SEED").ok();
    given.map_or_else(|| rand::rng().random(), |seed| seed.parse().unwrap())
}

#[tokio::test]
async fn every_answer_matches_the_openapi_document() {
    let seed = seed();
    let mut rng = StdRng::seed_from_u64(seed);
    // Limits the waits of requests to the time of a test.
    let fixture = Fixture::with(&[("http.request_timeout_secs", "12")]).await;
    let (document, known) = (document(), fixture.known().await);
    let operations = operations(&document);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut statuses = BTreeSet::new();
    for _ in 0..REQUESTS {
        for _ in 0..operations.len() {
            let operation = operations.choose(&mut rng).unwrap();
            let mut make = RequestGenerator { document: &document, known: &known, rng: &mut rng };
            let request = operation.request(&mut make);
            let Some(reply) = fixture.reply_to(&request, operation.is_stream()).await else {
                continue;
            };
            let faults = operation.faults(&document, &reply);
            assert!(faults.is_empty(), "seed {seed}\n{request}\n{reply:?}\n{faults:#?}");
            statuses.insert(reply.status);
            *seen.entry(format!("{} {}", operation.method, operation.path)).or_default() +=
                usize::from(reply.status < 300);
        }
    }
    // The requests have to contain enough valid and enough invalid ones.
    for status in [200, 201, 400, 404, 415, 422] {
        assert!(statuses.contains(&status), "seed {seed}: never {status}, only {statuses:?}");
    }
    let never: Vec<&String> =
        seen.iter().filter(|(_, n_good)| **n_good == 0).map(|(name, _)| name).collect();
    // A campaign that is closed early refuses many later requests.
    assert!(
        never.len() <= seen.len() / 2,
        "seed {seed}: these operations never succeeded: {never:?}"
    );
}

#[tokio::test]
async fn every_example_of_the_openapi_document_is_accepted() {
    let fixture = Fixture::new().await;
    let document = document();
    let mut n_examples = 0;
    for operation in operations(&document) {
        let schema = &operation.about["requestBody"]["content"]["application/json"]["schema"];
        let is_many = schema["type"] == "array";
        let schema = if is_many { &schema["items"] } else { schema };
        let example = &schema::resolve(&document, schema)["example"];
        if example.is_null() {
            continue;
        }
        n_examples += 1;
        let campaign = fixture.world.campaign.id.to_string();
        let id = match operation.path.starts_with("/v1/tasks/") {
            true => done(&fixture.world).await.id.to_string(),
            false => campaign.clone(),
        };
        let path = operation.path.replace("{id}", &id).replace("{name}", "weekly");
        let body = if is_many { json!([example]) } else { example.clone() };
        let body = body.to_string().replace("00000000-0000-0000-0000-000000000000", &campaign);
        let reply = send(fixture.app.address, &operation.method, &path, &[], &body).await;
        assert!(reply.status < 300, "{} {path} {body}\n{reply:?}", operation.method);
    }
    assert!(n_examples >= 5, "{n_examples} examples");
}

/// Returns a task that may have children.
async fn done(world: &World) -> Task {
    let task = world.add("Plan it.").await;
    let (_, turn) = world.begin(&task, world.lease(), TurnSettings::default()).await;
    world.commit(&turn, "Done.", TurnSettings::default()).await.unwrap();
    task
}

/// Shows that the test above can fail.
#[tokio::test]
async fn an_answer_outside_the_openapi_document_is_detected() {
    let fixture = Fixture::new().await;
    let ask = json!({ "agent": "copywriter", "prompt": " " });
    let refused = fixture.post(&fixture.tasks(), &ask).await;
    let added =
        fixture.post(&fixture.tasks(), &json!({ "agent": "copywriter", "prompt": "x" })).await;
    let faults = |reply: &Reply, change: &dyn Fn(&mut Value)| {
        let mut document = document();
        change(&mut document);
        let operation =
            operations(&document).into_iter().find(|one| one.about["operationId"] == "add_task");
        operation.unwrap().faults(&document, reply)
    };
    let at = |pointer: &'static str, value: Value| {
        move |document: &mut Value| *document.pointer_mut(pointer).unwrap() = value.clone()
    };
    assert_eq!(faults(&refused, &|_| {}), [""; 0]);
    assert_eq!(faults(&added, &|_| {}), [""; 0]);
    let answers = "/paths/~1v1~1campaigns~1{id}~1tasks/post/responses";
    let missing = |document: &mut Value| {
        _ = document.pointer_mut(answers).unwrap().as_object_mut().unwrap().remove("422");
    };
    assert_eq!(faults(&refused, &missing).len(), 1);
    let code = "/paths/~1v1~1campaigns~1{id}~1tasks/post/responses/422/content/application~1problem+json/schema/allOf/1/properties/code/enum";
    assert_eq!(faults(&refused, &at(code, json!(["other"]))).len(), 1);
    let kind = "/components/schemas/Task/properties/job_id/type";
    assert_eq!(faults(&added, &at(kind, json!("string"))).len(), 1);
    let required = "/components/schemas/Task/required";
    assert_eq!(faults(&added, &at(required, json!(["colour"]))).len(), 1);
    let states = "/components/schemas/TaskState/enum";
    assert_eq!(faults(&added, &at(states, json!(["idle"]))).len(), 1);
    let content = "/paths/~1v1~1campaigns~1{id}~1tasks/post/responses/201/content";
    assert_eq!(faults(&added, &at(content, json!({ "text/plain": {} }))).len(), 1);
}
