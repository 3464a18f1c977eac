//! A key that is bound to campaigns, on all routes.

use std::collections::BTreeSet;

use dalsegno::{
    domain::amount::Limit,
    http::{
        reach::FOR_BOUND_KEYS,
        scopes::{RequiredScope, needs},
    },
    operations::{self, Noun},
};
use serde_json::{Value, json};

use super::{KeySetup, id, without_names};
use crate::{
    conversations::world::{TurnSettings, World},
    http::client::{Reply, Stream},
};

/// A campaign with a thing of each kind.
struct CampaignObjects {
    campaign: String,
    task: String,
    session: String,
    flow: String,
}

async fn create_objects(setup: &KeySetup, world: &World) -> CampaignObjects {
    let session = world.turn("Part one.", TurnSettings::default()).await.session.id.to_string();
    let campaign = world.campaign.id.to_string();
    let ask = json!({ "agent": "copywriter", "prompt": "Part two." });
    let task = setup.admin("POST", &format!("/v1/campaigns/{campaign}/tasks"), &ask).await;
    let start = json!({ "template": "reviewed-text", "inputs": { "task": "Write." } });
    let flow = setup.admin("POST", &format!("/v1/campaigns/{campaign}/flows"), &start).await;
    CampaignObjects { task: id(&task.expect(201)), flow: id(&flow.expect(201)), campaign, session }
}

impl CampaignObjects {
    /// Returns the id for a path; `None` for a path about none of them.
    fn of(&self, path: &str) -> Option<&str> {
        let kinds = [
            ("/mcp/{id}", &self.campaign),
            ("/v1/campaigns/{id}", &self.campaign),
            ("/v1/tasks/{id}", &self.task),
            ("/v1/sessions/{id}", &self.session),
            ("/v1/flows/{id}", &self.flow),
        ];
        let found = kinds.into_iter().find(|(start, _)| path.starts_with(start));
        found.map(|(_, id)| id.as_str())
    }

    fn are_in(&self, reply: &Reply) -> bool {
        [&self.campaign, &self.task, &self.session, &self.flow]
            .into_iter()
            .any(|id| reply.body.contains(id.as_str()))
    }
}

impl KeySetup {
    async fn create_bound_key(&self, scopes: &[&str], campaigns: &[&str]) -> String {
        let wanted = json!({ "name": "bound", "scopes": scopes, "campaigns": campaigns });
        let made = self.admin("POST", "/v1/keys", &wanted).await.expect(201);
        assert_eq!((&made["campaigns"], &made["scopes"]), (&json!(campaigns), &json!(scopes)));
        assert_eq!(self.listed(&made["id"]).await["campaigns"], json!(campaigns));
        made["secret"].as_str().unwrap().to_owned()
    }
}

fn is_for_bound_keys(method: &str, path: &str) -> bool {
    let operation = operations::find(method, path);
    operation.is_some_and(|entry| entry.spec.for_bound_keys)
        || FOR_BOUND_KEYS.contains(&(method, path))
}

#[tokio::test]
async fn a_bound_key_reaches_only_its_campaign_on_every_route() {
    let setup = KeySetup::new().await;
    let others = World::over(setup.fixture.app.pool.clone(), Limit::default()).await;
    let mine = create_objects(&setup, &setup.fixture.world).await;
    let theirs = create_objects(&setup, &others).await;
    let key = setup.create_bound_key(&["admin"], &[&mine.campaign]).await;
    let unknown = "019aa2f4-0000-7000-8000-00000000dead";
    for (method, template, need) in needs() {
        let at = |id: &str| {
            let path = template.replace("{id}", id).replace("{name}", "stranger");
            path.replace("{item}", id).replace("{fact}", id).replace("{number}", "1")
        };
        let ask = async |id: &str| setup.ask(Some(&key), method, &at(id), &json!({})).await;
        let place = format!("{method} {template}");
        let has_own_test = ["/v1/feed", "/v1/ids", "/v1/search"].contains(&template)
            || template.starts_with("/v1/bulk-actions");
        if need == RequiredScope::Nothing || has_own_test {
            continue;
        }
        let Some(their) = theirs.of(template) else {
            let reply = ask(unknown).await;
            match is_for_bound_keys(method, template) {
                true => {
                    assert!(reply.status == 200 && !theirs.are_in(&reply), "{place}: {reply:?}")
                }
                false => drop(reply.problem(403, "key_is_bound")),
            }
            continue;
        };
        let (reply, nothing) = (ask(their).await, ask(unknown).await);
        let not_for_bound = [
            ("PUT", "/v1/campaigns/{id}/user"),
            ("GET", "/v1/sessions/{id}/context"),
            ("GET", "/v1/sessions/{id}/context-diff"),
            ("POST", "/v1/sessions/{id}/turns/{number}/reruns"),
            ("GET", "/v1/sessions/{id}/turns/{number}/reruns"),
            ("GET", "/v1/tasks/{id}/context/preview"),
            ("POST", "/v1/campaigns/{id}/context/preview"),
        ];
        if not_for_bound.contains(&(method, template)) {
            reply.problem(403, "key_is_bound");
            continue;
        }
        assert_eq!(reply.status, 404, "{place}: {reply:?}");
        let names = [their, unknown];
        assert_eq!(without_names(&reply, &names), without_names(&nothing, &names), "{place}");
    }
    // Its own things are found and listed.
    for (template, list) in [
        ("/v1/campaigns/{id}", "/v1/campaigns"),
        ("/v1/tasks/{id}", "/v1/tasks"),
        ("/v1/sessions/{id}", "/v1/sessions"),
        ("/v1/flows/{id}", "/v1/flows"),
    ] {
        let own = mine.of(template).unwrap();
        setup.get(&key, &template.replace("{id}", own)).await.expect(200);
        for path in [list.to_owned(), format!("{list}?limit=200")] {
            let listed = setup.get(&key, &path).await;
            listed.expect(200);
            assert!(listed.body.contains(own) && !theirs.are_in(&listed), "{path}: {listed:?}");
        }
    }
    for list in ["tasks", "sessions", "flows"] {
        let path = format!("/v1/{list}?campaign_id={}", theirs.campaign);
        assert_eq!(setup.get(&key, &path).await.expect(200)["items"], json!([]), "{path}");
    }
}

#[tokio::test]
async fn a_bound_key_finds_only_ids_of_its_campaign() {
    let setup = KeySetup::new().await;
    let others = World::over(setup.fixture.app.pool.clone(), Limit::default()).await;
    let mine = create_objects(&setup, &setup.fixture.world).await;
    let theirs = create_objects(&setup, &others).await;
    let key = setup.create_bound_key(&["read"], &[&mine.campaign]).await;
    let add = async |path: &str, body: Value| id(&setup.admin("POST", path, &body).await.json());
    let post = json!({ "text": "Hello.", "audience": ["operator"] });
    let record =
        json!({ "kind": "record", "name": "tides", "title": "Tides", "body": "Twice a day." });
    let (mut posts, mut records, mut cancels) = (Vec::new(), Vec::new(), Vec::new());
    for campaign in [&mine.campaign, &theirs.campaign] {
        let cancel = json!({ "action": "cancel", "filter": { "campaign_id": campaign } });
        cancels.push(add("/v1/bulk-actions", cancel).await);
        posts.push(add(&format!("/v1/campaigns/{campaign}/posts"), post.clone()).await);
        records.push(add(&format!("/v1/campaigns/{campaign}/memory"), record.clone()).await);
    }
    // Those of no campaign, even where they are about this one.
    let hook = json!({ "url": "https://example.com/", "campaign_id": mine.campaign });
    let hook = add("/v1/webhooks", hook).await;
    let delivery = add(&format!("/v1/webhooks/{hook}/test"), json!({})).await;
    let fact = json!({ "attribute": "City", "text": "Lives in Porto." });
    let fact = add("/v1/users/ann@example.org/facts", fact).await;
    let mut nouns = BTreeSet::new();
    for (noun, own, other) in [
        (Noun::Campaign, Some(&mine.campaign), &theirs.campaign),
        (Noun::Task, Some(&mine.task), &theirs.task),
        (Noun::Session, Some(&mine.session), &theirs.session),
        (Noun::Flow, Some(&mine.flow), &theirs.flow),
        (Noun::Post, Some(&posts[0]), &posts[1]),
        (Noun::MemoryItem, Some(&records[0]), &records[1]),
        (Noun::Webhook, None, &hook),
        (Noun::WebhookDelivery, None, &delivery),
        (Noun::BulkAction, Some(&cancels[0]), &cancels[1]),
        (Noun::Fact, None, &fact),
    ] {
        let noun = json!(noun).as_str().unwrap().to_owned();
        let path = |id: &str| format!("/v1/ids?noun={noun}&text={}", &id[24..]);
        if let Some(own) = own {
            assert_eq!(setup.get(&key, &path(own)).await.expect(200)["id"], json!(own));
        }
        setup.get(&key, &path(other)).await.problem(404, "unknown_id");
        let found = setup.admin("GET", &path(other), &Value::Null).await;
        assert_eq!(found.expect(200)["id"], json!(other), "{noun}");
        nouns.insert(noun);
    }
    let document: Value = serde_json::from_str(dalsegno::http::document()).unwrap();
    let parameters = document["paths"]["/v1/ids"]["get"]["parameters"].as_array().unwrap();
    let noun = parameters.iter().find(|parameter| parameter["name"] == "noun").unwrap();
    let all = noun["schema"]["enum"].as_array().unwrap().iter();
    assert_eq!(nouns, all.map(|noun| noun.as_str().unwrap().to_owned()).collect());
    let named = setup.get(&key, "/v1/ids?noun=campaign&text=Harbour").await.expect(200);
    assert_eq!(named["id"], json!(mine.campaign), "both have the name");
}

#[tokio::test]
async fn an_enqueue_key_finds_only_ids_of_campaigns() {
    let setup = KeySetup::new().await;
    let others = World::over(setup.fixture.app.pool.clone(), Limit::default()).await;
    let mine = create_objects(&setup, &setup.fixture.world).await;
    let (_, key) = setup.create_key("shop", &["enqueue"]).await;
    let bound = setup.create_bound_key(&["enqueue"], &[&mine.campaign]).await;
    let find = async |key: &str, noun: &str, text: &str| {
        setup.get(key, &format!("/v1/ids?noun={noun}&text={text}")).await
    };
    let other = others.campaign.id.to_string();
    for (key, text) in
        [(&key, &mine.campaign[24..]), (&bound, &mine.campaign[24..]), (&bound, "Harbour")]
    {
        assert_eq!(find(key, "campaign", text).await.expect(200)["id"], json!(mine.campaign));
    }
    find(&bound, "campaign", &other[24..]).await.problem(404, "unknown_id");
    // Both have this name, and begin so.
    for text in ["Harbour", "0"] {
        let several = find(&key, "campaign", text).await;
        several.problem(422, "ambiguous_id");
        assert!(
            ![&mine.campaign, &other].iter().any(|id| several.body.contains(*id)),
            "{several:?}"
        );
    }
    for (noun, id) in [("task", &mine.task), ("session", &mine.session), ("flow", &mine.flow)] {
        let detail = find(&key, noun, &id[24..]).await.problem(403, "missing_scope");
        assert!(detail.contains("the whole id"), "{detail}");
    }
}

#[tokio::test]
async fn a_bound_key_changes_only_tasks_of_its_campaign_in_bulk() {
    let setup = KeySetup::new().await;
    let others = World::over(setup.fixture.app.pool.clone(), Limit::default()).await;
    let mine = setup.fixture.world.campaign.id;
    let key = setup.create_bound_key(&["operate"], &[&mine.to_string()]).await;
    setup.fixture.world.add("Part one.").await;
    others.add("Part one.").await;
    let of =
        |campaign: uuid::Uuid| json!({ "action": "cancel", "filter": { "campaign_id": campaign } });
    let anywhere = json!({ "action": "cancel", "filter": { "agent": "copywriter" } });
    for path in ["/v1/bulk-actions/preview", "/v1/bulk-actions"] {
        let ask = async |body: &Value| setup.ask(Some(&key), "POST", path, body).await;
        ask(&of(others.campaign.id)).await.problem(404, "unknown_campaign");
        let detail = ask(&anywhere).await.problem(403, "key_is_bound");
        assert!(detail.contains("campaign_id"), "{detail}");
        let reply = ask(&of(mine)).await;
        assert!([200, 202].contains(&reply.status), "{reply:?}");
        assert_eq!(reply.json()["matched"], 1);
    }
    let foreign =
        setup.admin("POST", "/v1/bulk-actions", &of(others.campaign.id)).await.expect(202);
    setup.admin("POST", "/v1/bulk-actions", &anywhere).await.expect(202);
    let listed = setup.get(&key, "/v1/bulk-actions").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    let own = id(&listed["items"][0]);
    setup.get(&key, &format!("/v1/bulk-actions/{own}")).await.expect(200);
    let theirs = id(&foreign);
    setup
        .get(&key, &format!("/v1/bulk-actions/{theirs}"))
        .await
        .problem(404, "unknown_bulk_action");
    let find =
        async |text: &str| setup.get(&key, &format!("/v1/ids?noun=bulk_action&text={text}")).await;
    assert_eq!(find(&own[24..]).await.expect(200)["id"], json!(own));
    find(&theirs[24..]).await.problem(404, "unknown_id");
}

#[tokio::test]
async fn the_feed_of_a_bound_key_contains_only_its_campaign() {
    let setup = KeySetup::new().await;
    let others = World::over(setup.fixture.app.pool.clone(), Limit::default()).await;
    let mine = setup.fixture.world.campaign.id.to_string();
    let key = setup.create_bound_key(&["read"], &[&mine]).await;
    others.add("Part one.").await;
    let task = setup.fixture.world.add("Part one.").await;
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str())];
    let path = "/v1/feed?after=0&kinds=task.queued";
    let stream = Stream::open_with(setup.fixture.app.address, path, &headers).await;
    let event = stream.ok().unwrap().next().await.unwrap();
    let event: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!(event["task_id"], task.id.to_string());
}

#[tokio::test]
async fn a_bound_enqueue_key_adds_tasks_in_its_campaign_and_sees_only_its_own() {
    let setup = KeySetup::new().await;
    let others = World::over(setup.fixture.app.pool.clone(), Limit::default()).await;
    let mine = setup.fixture.world.campaign.id.to_string();
    let key = setup.create_bound_key(&["enqueue"], &[&mine]).await;
    let ask = json!({ "agent": "copywriter", "prompt": "Part one." });
    let path = |campaign: &str| format!("/v1/campaigns/{campaign}/tasks");
    let task = setup.ask(Some(&key), "POST", &path(&mine), &ask).await.expect(201);
    setup.get(&key, &format!("/v1/tasks/{}", id(&task))).await.expect(200);
    let theirs = path(&others.campaign.id.to_string());
    setup.ask(Some(&key), "POST", &theirs, &ask).await.problem(404, "unknown_campaign");
    let foreign = setup.fixture.world.add("Part two.").await.id;
    setup.get(&key, &format!("/v1/tasks/{foreign}")).await.problem(404, "unknown_task");
}

#[tokio::test]
async fn a_successor_is_bound_too_and_invalid_bounds_are_refused() {
    let setup = KeySetup::new().await;
    let mine = setup.fixture.world.campaign.id.to_string();
    setup.create_bound_key(&["read", "enqueue"], &[&mine]).await;
    let keys = setup.admin("GET", "/v1/keys", &Value::Null).await.expect(200);
    let rotate = format!("/v1/keys/{}/rotate", id(&keys["items"][0]));
    let successor = setup.admin("POST", &rotate, &json!({})).await.expect(201);
    assert_eq!(successor["campaigns"], json!([mine]));
    assert_eq!(successor["scopes"], json!(["read", "enqueue"]));
    let wanted =
        |campaigns: Value| json!({ "name": "x", "scopes": ["read"], "campaigns": campaigns });
    let ask = async |campaigns| setup.admin("POST", "/v1/keys", &wanted(campaigns)).await;
    ask(json!([uuid::Uuid::nil()])).await.problem(404, "unknown_campaign");
    let detail = ask(json!([])).await.problem(422, "bad_value");
    assert!(detail.contains("1 to 100 campaigns"), "{detail}");
}
