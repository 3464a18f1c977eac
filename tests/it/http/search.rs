//! `/v1/search`: texts of all kinds, their filters, their pages, and the campaigns of a key.

use dalsegno::domain::amount::Limit;
use serde_json::{Value, json};

use super::{Fixture, key_setup::KeySetup};
use crate::conversations::world::{TurnSettings, World};

impl Fixture {
    /// Writes a text of each kind about the quay.
    async fn write_texts(&self) {
        self.world.turn("Part one: the quay at night.", TurnSettings::default()).await;
        self.world.add("Part two: two quays, and rain.").await;
        let campaign = format!("/v1/campaigns/{}", self.world.campaign.id);
        let post = json!({ "text": "Mind the quay. @planner", "audience": ["operator"] });
        self.post(&format!("{campaign}/posts"), &post).await.expect(201);
        let item = json!({ "kind": "record", "name": "quay", "title": "The quay", "body": "It is **wet**." });
        self.post(&format!("{campaign}/memory"), &item).await.expect(200);
    }

    async fn search(&self, query: &str) -> Vec<Value> {
        let found = self.get(&format!("/v1/search?{query}")).await.expect(200);
        found["items"].as_array().unwrap().clone()
    }
}

fn kinds(hits: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = hits.iter().map(|hit| hit["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    kinds
}

fn marked(hit: &Value) -> String {
    let parts = hit["snippet"].as_array().unwrap().iter();
    let text = |part: &Value| {
        let text = part["text"].as_str().unwrap();
        if part["is_match"] == true { format!("[{text}]") } else { text.to_owned() }
    };
    parts.map(text).collect()
}

#[tokio::test]
async fn texts_of_each_kind_are_found_with_their_matches() {
    let fixture = Fixture::new().await;
    fixture.write_texts().await;
    let hits = fixture.search("q=quay").await;
    // The mention has added a task, and the answer of the scripted turn repeats nothing.
    assert_eq!(kinds(&hits), ["memory", "post", "task", "task", "task"], "{hits:?}");
    let open = fixture.search("q=quay+rain&kind=task").await;
    assert_eq!(marked(&open[0]), "Part two: two [quays], and [rain].");
    assert_eq!(open.len(), 1);
    assert_eq!(kinds(&fixture.search("q=quay+-rain&kind=task").await), ["task", "task"]);
    assert_eq!(kinds(&fixture.search("q=%22at+night%22").await), ["task"]);
    assert_eq!(kinds(&fixture.search("q=quay&agent=planner").await), ["task"]);
    assert_eq!(fixture.search("q=quay&agent=copywriter").await.len(), 2);
    let memory = fixture.search("q=wet&kind=memory").await;
    assert_eq!(marked(&memory[0]), "The quay\nIt is **[wet]**.");
    let answers = fixture.search("q=answer&kind=message").await;
    assert!(answers.iter().all(|hit| hit["session_id"].is_string() && hit["seq"].is_i64()));
    assert_eq!(fixture.search("q=quay&created_before=2020-01-01T00:00:00Z").await.len(), 0);
    assert_eq!(fixture.search("q=quay&created_after=2099-01-01T00:00:00Z").await.len(), 0);
}

#[tokio::test]
async fn pages_follow_each_other_back_in_time_without_gap_or_repetition() {
    let fixture = Fixture::new().await;
    // Over all spans of the search, some at the same moment.
    let fill = "insert into dalsegno.posts (campaign_id, seq, id, posted_at, origin, sender, audience, text)
         select $1, n, gen_random_uuid(), '2026-11-20 11:00+00'::timestamptz - (n / 2) * interval '11 days', 'operator', 'operator', '{all}', 'Harbour ' || n
           from generate_series(1, 90) as n";
    sqlx::query(fill).bind(fixture.world.campaign.id).execute(&fixture.world.pool).await.unwrap();
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = fixture.get(&format!("/v1/search?q=harbour&limit=7{cursor}")).await.expect(200);
        all.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let times: Vec<&str> = all.iter().map(|hit| hit["at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let mut places: Vec<i64> = all.iter().map(|hit| hit["seq"].as_i64().unwrap()).collect();
    places.sort_unstable();
    assert_eq!(places, (1..=90).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_search_that_cannot_be_read_is_refused() {
    let fixture = Fixture::new().await;
    fixture.get("/v1/search?q=").await.problem(422, "empty_text");
    fixture.get("/v1/search?q=-rain").await.problem(422, "no_words");
    fixture.get("/v1/search").await.problem(400, "bad_query");
    for wrong in ["cursor=7", "kind=poem", "campaign_id=x", "limit=0", "created_after=soon"] {
        let detail = fixture.get(&format!("/v1/search?q=quay&{wrong}")).await;
        detail.problem(400, "bad_query");
    }
}

#[tokio::test]
async fn a_bound_key_finds_texts_of_its_campaigns_only() {
    let setup = KeySetup::new().await;
    let mine = &setup.fixture.world;
    let theirs = World::over(setup.fixture.app.pool.clone(), Limit::default()).await;
    for world in [mine, &theirs] {
        world.turn("Part one: the quay.", TurnSettings::default()).await;
        world.add("Part two: the quay.").await;
        let path = format!("/v1/campaigns/{}", world.campaign.id);
        let item = json!({ "kind": "edict", "name": "quay", "title": "The quay", "body": "Dry." });
        setup.admin("POST", &format!("{path}/memory"), &item).await.expect(200);
        let post = json!({ "text": "Mind the quay.", "audience": ["operator"] });
        setup.admin("POST", &format!("{path}/posts"), &post).await.expect(201);
    }
    let wanted = json!({ "name": "bound", "scopes": ["read"], "campaigns": [mine.campaign.id] });
    let key = setup.admin("POST", "/v1/keys", &wanted).await.expect(201);
    let key = key["secret"].as_str().unwrap();
    let all = setup.admin("GET", "/v1/search?q=quay", &Value::Null).await.expect(200);
    let own = setup.get(key, "/v1/search?q=quay").await.expect(200);
    let own = own["items"].as_array().unwrap();
    assert_eq!(all["items"].as_array().unwrap().len(), own.len() * 2);
    assert!(own.len() >= 4, "{own:?}");
    assert!(own.iter().all(|hit| hit["campaign_id"] == json!(mine.campaign.id)), "{own:?}");
    let other = format!("/v1/search?q=quay&campaign_id={}", theirs.campaign.id);
    assert_eq!(setup.get(key, &other).await.expect(200)["items"], json!([]));
}

impl Fixture {
    /// Writes about the quay where only people and summaries write.
    async fn write_beside_tasks(&self) {
        let campaign = format!("/v1/campaigns/{}", self.world.campaign.id);
        let brief = json!({ "brief": "A series about the harbour.", "client_context": "The client owns a quay." });
        self.patch(&campaign, &brief).await.expect(200);
        let board = json!({ "patch": { "places": { "quay": "at night" } } });
        self.patch(&format!("{campaign}/blackboard"), &board).await.expect(200);
        let fact = json!({ "attribute": "Boat", "text": "Has a boat at the quay." });
        self.post("/v1/users/ann@example.org/facts", &fact).await.expect(200);
        self.world.turn("Part one.", TurnSettings::default()).await;
        let summary = "insert into dalsegno.compactions (session_id, from_seq, to_seq, tokens_before, tokens_after, created_at, applied_at,
                    generation, parent, turn, cause, outcome, summary)
             select id, 1, 1, 9000, 675, now(), now(), 1, 0, 1, 'manual', 'applied', 'Part one is about the quay.' from dalsegno.sessions";
        sqlx::query(summary).execute(&self.world.pool).await.unwrap();
    }
}

#[tokio::test]
async fn summaries_briefs_blackboards_and_facts_are_found_as_they_are_now() {
    let fixture = Fixture::new().await;
    fixture.write_beside_tasks().await;
    let hits = fixture.search("q=quay").await;
    assert_eq!(kinds(&hits), ["blackboard", "brief", "fact", "summary"], "{hits:?}");
    let of = |kind: &str| hits.iter().find(|hit| hit["kind"] == kind).unwrap();
    assert!(marked(of("brief")).contains("owns a [quay]"), "{hits:?}");
    assert_eq!(marked(of("blackboard")), r#"{"places": {"[quay]": "at night"}}"#);
    assert_eq!(marked(of("fact")), "Boat: Has a boat at the [quay].");
    assert_eq!(marked(of("summary")), "Part one is about the [quay].");
    let fact = of("fact");
    assert_eq!((&fact["author"], &fact["campaign_id"]), (&json!("ann@example.org"), &json!(null)));
    assert_eq!(kinds(&fixture.search("q=quay&agent=copywriter").await), ["summary"]);

    // Earlier versions are not found, and neither are ended facts.
    let campaign = format!("/v1/campaigns/{}", fixture.world.campaign.id);
    fixture
        .patch(&campaign, &json!({ "client_context": "The client has moved." }))
        .await
        .expect(200);
    let board = json!({ "patch": { "places": null } });
    fixture.patch(&format!("{campaign}/blackboard"), &board).await.expect(200);
    let one = format!("/v1/users/ann@example.org/facts/{}/revoke", fact["id"].as_str().unwrap());
    fixture.post(&one, &json!({})).await.expect(200);
    assert_eq!(kinds(&fixture.search("q=quay").await), ["summary"]);
}

#[tokio::test]
async fn facts_about_users_are_not_found_with_a_bound_key() {
    let setup = KeySetup::new().await;
    let fact = json!({ "attribute": "Boat", "text": "Has a boat at the quay." });
    setup.admin("POST", "/v1/users/ann/facts", &fact).await.expect(200);
    let mine = setup.fixture.world.campaign.id;
    let wanted = json!({ "name": "bound", "scopes": ["read"], "campaigns": [mine] });
    let key = setup.admin("POST", "/v1/keys", &wanted).await.expect(201);
    let found = setup.admin("GET", "/v1/search?q=quay", &Value::Null).await.expect(200);
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    let key = key["secret"].as_str().unwrap();
    assert_eq!(setup.get(key, "/v1/search?q=quay").await.expect(200)["items"], json!([]));
}

/// The week of a text is a word of its index, so that common words of older weeks cost nothing.
#[tokio::test]
async fn each_kind_of_texts_is_searched_by_its_index() {
    let fixture = Fixture::new().await;
    let pool = &fixture.world.pool;
    let fill = "insert into dalsegno.posts (campaign_id, seq, id, posted_at, origin, sender, audience, text)
         select $1, n, gen_random_uuid(), '2026-11-20 11:00+00'::timestamptz - n * interval '30 minutes', 'operator', 'operator', '{all}', 'Words of ' || n
           from generate_series(1, 20000) as n";
    sqlx::query(fill).bind(fixture.world.campaign.id).execute(pool).await.unwrap();
    sqlx::raw_sql("vacuum analyze dalsegno.posts").execute(pool).await.unwrap();
    let plan = async |sql: &'static str| {
        let mut tx = pool.begin().await.unwrap();
        let rows = sqlx::query_scalar::<_, String>(sql).fetch_all(&mut *tx).await.unwrap();
        rows.join("\n")
    };
    let posts = plan(
        "explain analyze select id from dalsegno.posts where dalsegno.text_words(text, posted_at)
         @@ (dalsegno.text_query('words') && ''':w2968'''::tsquery)",
    )
    .await;
    assert!(posts.contains("posts_texts") && !posts.contains("Seq Scan"), "{posts}");
    // One week has 336 posts, and the newest week has begun the day before.
    assert!(posts.contains("rows=70"), "{posts}");
    assert_eq!(fixture.search("q=words&kind=post&limit=200").await.len(), 200);
    let expected = [
        (
            "search_words_words",
            "explain select task_id from dalsegno.search_words where words @@ dalsegno.text_query('words')",
        ),
        (
            "messages_texts",
            "explain select id from dalsegno.messages where (role = 'tool' or tool_calls is not null or partial)
             and dalsegno.text_words(text, created_at) @@ dalsegno.text_query('words')",
        ),
        (
            "compactions_texts",
            "explain select id from dalsegno.compactions where outcome = 'applied'
             and dalsegno.text_words(summary, created_at) @@ dalsegno.text_query('words')",
        ),
        (
            "campaign_versions_texts",
            "explain select version from dalsegno.campaign_versions
              where dalsegno.text_words(brief || E'\\n' || coalesce(client_context, ''), changed_at) @@ dalsegno.text_query('words')",
        ),
        (
            "blackboards_texts",
            "explain select version from dalsegno.blackboards
              where dalsegno.text_words(document::text, changed_at) @@ dalsegno.text_query('words')",
        ),
    ];
    for (index, sql) in expected {
        let mut tx = pool.begin().await.unwrap();
        sqlx::query("set local enable_seqscan = off").execute(&mut *tx).await.unwrap();
        let rows = sqlx::query_scalar::<_, String>(sql).fetch_all(&mut *tx).await.unwrap();
        assert!(rows.join("\n").contains(index), "{rows:?}");
    }
}
