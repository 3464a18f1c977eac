//! Tags and metadata of tasks and campaigns, and filters by them, by time and by text of the prompt.

use chrono::TimeDelta;
use dalsegno::domain::{
    Page,
    tasks::{self, State, TaskFilter},
};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::Fixture;
use crate::{app::noon, conversations::world::World};

impl Fixture {
    /// Returns the prompts of a list.
    async fn prompts(&self, query: &str) -> Vec<String> {
        let listed = self.get(&format!("/v1/tasks?{query}")).await.expect(200);
        let items = listed["items"].as_array().unwrap().iter();
        items.map(|task| task["prompt"].as_str().unwrap().to_owned()).collect()
    }

    async fn ask(&self, prompt: &str, more: Value) -> Value {
        let mut ask = json!({ "agent": "copywriter", "prompt": prompt });
        ask.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        self.post(&self.tasks(), &ask).await.expect(201)
    }
}

#[tokio::test]
async fn a_task_is_found_by_its_tags_and_metadata_however_it_was_added() {
    let fixture = Fixture::new().await;
    let acme =
        json!({ "tags": ["urgent", "series:a"], "metadata": { "customer": "acme", "order": 17 } });
    let one = fixture.ask("One.", acme).await;
    fixture.ask("Two.", json!({ "tags": ["urgent"] })).await;
    fixture.ask("Three.", json!({ "metadata": { "customer": "acme" } })).await;
    fixture.ask("Four.", json!({ "depends_on": [one["id"]], "tags": ["late"] })).await;
    let line = json!({ "agent": "copywriter", "prompt": "Five.", "tags": ["late"], "metadata": { "n": [1] } });
    fixture.post(&format!("{}/bulk", fixture.tasks()), &json!([line])).await.expect(201);
    let in_sql = "select dalsegno.add_task($1, 'copywriter', 'Six.', tags => '{in-sql}', metadata => '{\"n\": [1, 2]}')";
    sqlx::query(in_sql).bind(fixture.world.campaign.id).execute(&fixture.app.pool).await.unwrap();
    fixture.ask("Seven.", json!({})).await;
    for (query, found) in [
        ("tags=urgent", &["Two.", "One."][..]),
        ("tags=urgent,series:a", &["One."]),
        ("metadata=%7B%22customer%22:%22acme%22%7D", &["Three.", "One."]),
        ("metadata=%7B%22customer%22:%22acme%22,%22order%22:17%7D", &["One."]),
        ("tags=urgent&metadata=%7B%22customer%22:%22acme%22%7D", &["One."]),
        ("tags=late", &["Five.", "Four."]),
        ("tags=in-sql", &["Six."]),
        ("metadata=%7B%22n%22:[2]%7D", &["Six."]),
        ("tags=late&limit=1", &["Five."]),
        ("tags=late&agent=planner", &[]),
        ("tags=unheard", &[]),
        ("limit=2&tags=late,", &["Five.", "Four."]),
    ] {
        assert_eq!(fixture.prompts(query).await, found, "{query}");
    }
    let page = fixture.get("/v1/tasks?tags=late&limit=1").await.expect(200);
    let next = format!("tags=late&cursor={}", page["next"].as_str().unwrap());
    assert_eq!(fixture.prompts(&next).await, ["Four."]);
    let shown =
        fixture.get(&format!("/v1/tasks/{}", one["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(shown["tags"], json!(["urgent", "series:a"]));
    assert_eq!(shown["metadata"], json!({ "customer": "acme", "order": 17 }));
    let listed = fixture.get("/v1/tasks?tags=series:a").await.expect(200);
    assert_eq!(listed["items"][0]["metadata"], shown["metadata"]);
    assert_eq!(listed["items"][0]["tags"], shown["tags"]);
}

#[tokio::test]
async fn labels_are_not_part_of_the_input_digest_and_invalid_ones_are_refused() {
    let fixture = Fixture::new().await;
    let key = [("Idempotency-Key", "part-1")];
    let ask = |more: Value| {
        let mut ask = json!({ "agent": "copywriter", "prompt": "Part one." });
        ask.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        ask
    };
    let first = ask(json!({ "tags": ["a"] }));
    let first = fixture.post_with(&fixture.tasks(), &first, &key).await.expect(201);
    let again = ask(json!({ "tags": ["b"], "metadata": { "c": 1 } }));
    let again = fixture.post_with(&fixture.tasks(), &again, &key).await.expect(200);
    assert_eq!(first["id"], again["id"]);
    for added in [&first, &again] {
        assert_eq!((&added["tags"], &added["metadata"]), (&json!(["a"]), &json!({})), "{added}");
    }
    assert_eq!(fixture.prompts("tags=b").await, [""; 0]);
    let long = json!({ "metadata": { "a": "x".repeat(4_100) } });
    for (wrong, status, code) in [
        (json!({ "tags": ["Not this"] }), 422, "bad_tags"),
        (json!({ "tags": vec!["a"; 17] }), 422, "bad_tags"),
        (long, 413, "metadata_too_long"),
        (json!({ "metadata": { "a": 1e300 } }), 201, ""),
        (json!({ "metadata": { "a": "\u{0}" } }), 422, "bad_argument"),
        (json!({ "metadata": [] }), 422, "bad_field"),
        (json!({ "tags": "a" }), 422, "bad_field"),
    ] {
        let reply = fixture.post(&fixture.tasks(), &ask(wrong.clone())).await;
        match status {
            201 => drop(reply.expect(201)),
            _ => drop(reply.problem(status, code)),
        }
        let new = json!({ "name": "Harbour" });
        let mut new = new.as_object().cloned().unwrap();
        new.extend(wrong.as_object().cloned().unwrap());
        let reply = fixture.post("/v1/campaigns", &Value::Object(new)).await;
        assert_eq!(reply.status, status, "{reply:?}");
    }
    let line = json!([{ "agent": "copywriter", "prompt": "x", "tags": ["?"] }]);
    let refused = fixture.post(&format!("{}/bulk", fixture.tasks()), &line).await;
    refused.problem(422, "bad_items");
    assert!(refused.body.contains("bad_tags"), "{refused:?}");
    for query in ["metadata=acme", "metadata=[1]", "text=", "created_after=yesterday"] {
        fixture.get(&format!("/v1/tasks?{query}")).await.problem(400, "bad_query");
    }
    let sql = "select dalsegno.add_task($1, 'copywriter', 'x', tags => '{A}')";
    let sql = sqlx::query(sql).bind(fixture.world.campaign.id).execute(&fixture.app.pool).await;
    assert!(sql.unwrap_err().to_string().contains("the tags do not fit"));
}

#[tokio::test]
async fn campaigns_are_found_by_tags_and_metadata() {
    let fixture = Fixture::new().await;
    let new = json!({ "name": "Spring", "tags": ["series"], "metadata": { "customer": "acme" } });
    let spring = fixture.post("/v1/campaigns", &new).await.expect(201);
    assert_eq!((&spring["tags"], &spring["metadata"]), (&new["tags"], &new["metadata"]));
    let names = async |query: &str| {
        let listed = fixture.get(&format!("/v1/campaigns?{query}")).await.expect(200);
        let items = listed["items"].as_array().unwrap().iter();
        items.map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (query, found) in [
        ("tags=series", &["Spring"][..]),
        ("metadata=%7B%22customer%22:%22acme%22%7D", &["Spring"]),
        ("tags=series,other", &[]),
        ("", &["Spring", "Harbour"]),
    ] {
        assert_eq!(names(query).await, found, "{query}");
    }
}

#[tokio::test]
async fn a_text_search_reads_a_limited_number_of_prompts_per_page() {
    let fixture = Fixture::new().await;
    fixture.ask("The Tide comes in.", json!({})).await;
    fixture.ask("100% sure_thing", json!({})).await;
    assert_eq!(fixture.prompts("text=tide").await, ["The Tide comes in."]);
    // The text is literal, not a pattern.
    assert_eq!(fixture.prompts("text=100%25").await, ["100% sure_thing"]);
    assert_eq!(fixture.prompts("text=sure-thing").await, [""; 0]);
    let many = "insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt)
                select ('ffff' || substr(gen_random_uuid()::text, 5))::uuid, $1, -n, 'copywriter', 'Wait.'
                  from generate_series(1, 2500) as n";
    sqlx::query(many).bind(fixture.world.campaign.id).execute(&fixture.app.pool).await.unwrap();
    let first = fixture.get("/v1/tasks?text=tide").await.expect(200);
    assert_eq!(first["items"], json!([]));
    let next = format!("text=tide&cursor={}", first["next"].as_str().unwrap());
    assert_eq!(fixture.prompts(&next).await, ["The Tide comes in."]);
    let last = fixture.get(&format!("/v1/tasks?{next}")).await.expect(200);
    assert_eq!(last["next"], Value::Null);
}

#[tokio::test]
async fn filters_without_an_index_check_a_limited_number_of_tasks_per_page() {
    let fixture = Fixture::new().await;
    fixture.ask("Plan the parts.", json!({ "agent": "planner" })).await;
    let many = "insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt)
                select ('ffff' || substr(gen_random_uuid()::text, 5))::uuid, $1, -n, 'copywriter', 'Wait.'
                  from generate_series(1, 2500) as n";
    sqlx::query(many).bind(fixture.world.campaign.id).execute(&fixture.app.pool).await.unwrap();
    let campaign = fixture.world.campaign.id;
    for filter in ["agent=planner".to_owned(), format!("campaign_id={campaign}&agent=planner")] {
        let first = fixture.get(&format!("/v1/tasks?{filter}")).await.expect(200);
        assert_eq!(first["items"], json!([]), "{filter}");
        let next = format!("{filter}&cursor={}", first["next"].as_str().unwrap());
        assert_eq!(fixture.prompts(&next).await, ["Plan the parts."]);
        let last = fixture.get(&format!("/v1/tasks?{next}")).await.expect(200);
        assert_eq!(last["next"], Value::Null);
    }
    // These have an index.
    for filter in [
        "state=failed".to_owned(),
        "state=running".to_owned(),
        format!("campaign_id={}", Uuid::nil()),
    ] {
        let listed = fixture.get(&format!("/v1/tasks?{filter}")).await.expect(200);
        assert_eq!(listed, json!({ "items": [], "next": null }), "{filter}");
    }
}

#[tokio::test]
async fn tasks_are_listed_by_their_creation_time() {
    let fixture = Fixture::new().await;
    fixture.ask("Now.", json!({})).await;
    let earlier = "insert into dalsegno.tasks (id, created_at, campaign_id, job_id, agent, prompt)
                   values ($2, '2026-11-19 12:00+00', $1, -1, 'copywriter', 'Yesterday.')";
    let id = Uuid::from_u128((1_795_089_600_000_u128 << 80) | 0x7000_8000_0000_0000_0001);
    let campaign = fixture.world.campaign.id;
    sqlx::query(earlier).bind(campaign).bind(id).execute(&fixture.app.pool).await.unwrap();
    let (noon, before) = ("2026-11-20T12:00:00Z", "2026-11-19T12:00:00Z");
    for (query, found) in [
        (format!("created_after={noon}"), &["Now."][..]),
        (format!("created_before={noon}"), &["Yesterday."]),
        (format!("created_after={before}"), &["Now.", "Yesterday."]),
        (format!("created_after={before}&created_before={noon}"), &["Yesterday."]),
        (format!("created_before={before}"), &[]),
    ] {
        assert_eq!(fixture.prompts(&query).await, found, "{query}");
    }
}

/// With the generic plan that a prepared statement gets after some calls.
#[tokio::test]
async fn a_list_by_rare_labels_reads_few_rows() {
    let world = World::new().await;
    let many = "with added as (
                  insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt)
                  select gen_random_uuid(), $1, -n, 'copywriter', 'Wait.' from generate_series(1, 20000) as n
                  returning id, job_id)
                insert into dalsegno.task_labels (task_id, tags, metadata)
                select id, case when job_id % 1000 = 0 then '{rare}' else '{common}' end::text[], jsonb_build_object('n', -job_id) from added";
    sqlx::query(many).bind(world.campaign.id).execute(&world.pool).await.unwrap();
    sqlx::query("vacuum analyze").execute(&world.pool).await.unwrap();
    let mut conn = PgConnection::connect(&world.url()).await.unwrap();
    sqlx::query("set plan_cache_mode = force_generic_plan").execute(&mut conn).await.unwrap();
    let tagged = TaskFilter { tags: vec!["rare".to_owned()], ..TaskFilter::default() };
    let metadata = json!({ "n": 77 }).as_object().cloned().unwrap();
    let with_metadata = TaskFilter { metadata, ..TaskFilter::default() };
    for (filter, n_found) in [(tagged, 20), (with_metadata, 1)] {
        let mut tx = conn.begin().await.unwrap();
        let page = Page { after: None, limit: 50 };
        let found = tasks::search(&mut tx, &filter, None, page).await.unwrap();
        assert_eq!(found.tasks.len(), n_found);
        let n_read = rows_read(&mut tx).await;
        assert!(n_read <= 200, "{n_read} rows were read for {filter:?}");
        let (states, until) = (&[State::Queued][..], noon() + TimeDelta::days(36_500));
        let n = tasks::count_matching(&mut *tx, &filter, states, until).await.unwrap();
        let ids = tasks::list_matching(&mut *tx, &filter, states, until, None, 50).await.unwrap();
        assert_eq!((n, ids.len()), (n_found as i64, n_found));
        let n_read = rows_read(&mut tx).await - n_read;
        assert!(n_read <= 200, "{n_read} rows were read for an action on {filter:?}");
    }
}

/// The rows of tasks and of their labels that a transaction has read.
async fn rows_read(conn: &mut PgConnection) -> i64 {
    let read = "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint from pg_stat_xact_user_tables
                 where relname in ('tasks', 'task_labels') and schemaname = 'dalsegno'";
    sqlx::query_scalar(read).fetch_one(conn).await.unwrap()
}

/// As a prepared statement has it after some calls: a plan for any arguments.
#[tokio::test]
async fn a_list_by_time_reads_little_more_than_its_tasks() {
    let world = World::new().await;
    // One task an hour.
    let many = "insert into dalsegno.tasks (id, created_at, campaign_id, job_id, agent, prompt)
                select dalsegno.time_ordered_uuid(t.at), t.at, $1, -t.n, 'copywriter', 'Wait.'
                  from (select n, $2::timestamptz - n * interval '1 hour' as at from generate_series(20000, 1, -1) as n) as t";
    sqlx::query(many).bind(world.campaign.id).bind(noon()).execute(&world.pool).await.unwrap();
    // A process whose clock was set back gives an id of the later time.
    let ahead = "insert into dalsegno.tasks (id, created_at, campaign_id, job_id, agent, prompt)
                 select dalsegno.time_ordered_uuid($2::timestamptz + interval '20 hours'), $2, $1, -30000, 'copywriter', 'Ahead.'";
    let (old, hour) = (noon() - TimeDelta::days(500), TimeDelta::hours(1));
    sqlx::query(ahead)
        .bind(world.campaign.id)
        .bind(old - hour / 2)
        .execute(&world.pool)
        .await
        .unwrap();
    sqlx::query("vacuum analyze").execute(&world.pool).await.unwrap();
    let mut conn = PgConnection::connect(&world.url()).await.unwrap();
    sqlx::query("set plan_cache_mode = force_generic_plan").execute(&mut conn).await.unwrap();
    let between = |created_after, created_before| TaskFilter {
        created_after,
        created_before,
        ..TaskFilter::default()
    };
    let states = &[State::Queued][..];
    for (filter, n_found, is_bulk) in [
        (TaskFilter::default(), 50, false),
        (between(Some(noon() - hour * 10), None), 10, true),
        (between(None, Some(old)), 50, false),
        (between(Some(old - hour * 10), Some(old)), 11, true),
    ] {
        let mut tx = conn.begin().await.unwrap();
        let page = Page { after: None, limit: 50 };
        let found = tasks::search(&mut tx, &filter, None, page).await.unwrap();
        assert_eq!(found.tasks.len(), n_found, "{filter:?}");
        if is_bulk {
            let n = tasks::count_matching(&mut *tx, &filter, states, noon()).await.unwrap();
            let ids =
                tasks::list_matching(&mut *tx, &filter, states, noon(), None, 50).await.unwrap();
            assert_eq!((n, ids.len()), (n_found as i64, n_found), "{filter:?}");
        }
        let n_read = rows_read(&mut tx).await;
        // Three statements, each with up to a day of tasks beyond the filter.
        assert!(n_read <= 600, "{n_read} of 20,000 rows were read for {filter:?}");
    }
}
