//! Forgery of erasure receipts by the service's role: only results of the owner's functions are signed.

use dalsegno::domain::{
    amount::Limit,
    erasures::{self, Key},
    transaction,
};
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    app::{TestDatabase, noon},
    conversations::world::{TurnSettings, World},
    service::ServiceRole,
};

const MEASURE: &str = "select dalsegno.measure_erasure($1)";
const END: &str = "select dalsegno.end_erasure($1, now(), 1)";
const FORGED: [&str; 3] = [
    "update dalsegno.erasures set contents = '{}' where campaign_id = $1",
    "update dalsegno.erasures set ended_at = now() where campaign_id = $1",
    END,
];

/// Returns the text of the schema's refusal.
async fn refusal(pool: &PgPool, campaign: Uuid, sql: &'static str) -> String {
    let refused = sqlx::query(sql).bind(campaign).execute(pool).await.expect_err(sql);
    let refused = refused.as_database_error().unwrap();
    assert_eq!(refused.code().unwrap(), "DS405", "{sql}: {refused}");
    refused.message().to_owned()
}

async fn step_through(pool: &PgPool, campaign: Uuid) {
    let mut step = Some(erasures::Step::FIRST);
    while let Some(now) = step {
        let mut tx = transaction::begin(pool).await.unwrap();
        let more = erasures::next_batch(&mut tx, campaign, now).await.unwrap();
        transaction::commit(tx).await.unwrap();
        step = if more { Some(now) } else { now.next() };
    }
}

async fn end_and_sign(pool: &PgPool, campaign: Uuid, key: &Key) {
    let mut tx = transaction::begin(pool).await.unwrap();
    erasures::finish(&mut tx, campaign, 0, noon()).await.unwrap();
    erasures::sign(&mut tx, campaign, key).await.unwrap();
    transaction::commit(tx).await.unwrap();
}

async fn ask(pool: &PgPool, campaign: Uuid) {
    let mut tx = transaction::begin(pool).await.unwrap();
    erasures::request(&mut tx, campaign, "by request", noon()).await.unwrap();
    transaction::commit(tx).await.unwrap();
}

async fn statement(pool: &PgPool, campaign: Uuid) -> Value {
    let mut conn = pool.acquire().await.unwrap();
    let signed = erasures::get(&mut conn, campaign).await.unwrap().signed.unwrap();
    serde_json::from_str(&signed.statement).unwrap()
}

#[tokio::test]
async fn a_receipt_signs_the_owners_findings_despite_forged_rows_of_the_service_role() {
    let database = TestDatabase::migrated().await;
    let (owner, role) = (database.pool().await, ServiceRole::of(&database.options).await);
    let pool = PgPool::connect_with(role.options.clone()).await.unwrap();
    let world = World::over(pool.clone(), Limit::default()).await;
    world.turn("Part one.", TurnSettings::default()).await;
    let (id, folder) = (world.campaign.id, tempfile::tempdir().unwrap());
    let key = Key::open_or_create(&folder.path().join("key.pem")).unwrap();

    let made_up = "insert into dalsegno.erasures (id, campaign_id, reason, asked_at, contents) values (gen_random_uuid(), $1, 'x', now(), '{}')";
    assert!(refusal(&pool, id, made_up).await.contains("cannot write what there was"));
    let open = world.add_later("Part two.").await;
    ask(&pool, id).await;
    assert!(refusal(&pool, id, MEASURE).await.contains("have not ended"), "too early");
    let mut tx = transaction::begin(&pool).await.unwrap();
    erasures::cancel_one(&mut tx, id, open.id, noon()).await.unwrap();
    transaction::commit(tx).await.unwrap();
    for forged in FORGED {
        refusal(&pool, id, forged).await;
    }
    let early = "select dalsegno.remove_posts($1, 10)";
    assert!(
        refusal(&pool, id, early).await.contains("not measured"),
        "removed, and missing in the counts"
    );
    let in_use = "update dalsegno.sessions set expires_at = now() + interval '1 day'";
    sqlx::query(in_use).execute(&owner).await.unwrap();
    let early = "select dalsegno.remove_transcripts(array(select id from dalsegno.sessions where campaign_id = $1))";
    assert!(refusal(&pool, id, early).await.contains("in use"));

    let there = "select dalsegno.contents_of_campaign($1)";
    let there: Value = sqlx::query_scalar(there).bind(id).fetch_one(&owner).await.unwrap();
    assert_eq!(there["messages"]["rows"], 2, "{there}");
    let mut tx = transaction::begin(&pool).await.unwrap();
    erasures::measure_contents(&mut tx, id).await.unwrap();
    transaction::commit(tx).await.unwrap();
    let raised = "update dalsegno.erasures set removed = '{\"messages\": 4711, \"forged\": 4711}' where campaign_id = $1";
    sqlx::query(raised).bind(id).execute(&pool).await.unwrap();
    for forged in FORGED {
        refusal(&pool, id, forged).await;
    }
    assert!(
        refusal(&pool, id, END).await.contains("not erased yet: sessions, feed, tasks, campaign")
    );
    step_through(&pool, id).await;
    end_and_sign(&pool, id, &key).await;
    let signed = statement(&pool, id).await;
    assert_eq!(signed["contents"], there, "{signed}");
    assert!(!signed.to_string().contains("forged"), "{signed}");
    let ended = "select extract(epoch from ended_at - now())::float8 from dalsegno.erasures";
    let ended: f64 = sqlx::query_scalar(ended).fetch_one(&owner).await.unwrap();
    assert!(ended.abs() < 600.0, "the time of the database, not {ended} s beside it");

    // A signature for one campaign is not valid in the receipt of another.
    let other = World::over(pool.clone(), Limit::default()).await;
    let other_id = other.campaign.id;
    ask(&pool, other_id).await;
    let mut tx = transaction::begin(&pool).await.unwrap();
    erasures::measure_contents(&mut tx, other_id).await.unwrap();
    transaction::commit(tx).await.unwrap();
    step_through(&pool, other_id).await;
    let copied = "update dalsegno.erasures as e set statement = f.statement, signature = f.signature, public_key = f.public_key, removed = f.removed
                    from dalsegno.erasures as f where e.campaign_id = $1 and f.campaign_id <> $1";
    sqlx::query(copied).bind(other_id).execute(&pool).await.unwrap();
    end_and_sign(&pool, other_id, &key).await;
    let signed = statement(&pool, other_id).await;
    assert_eq!(signed["campaign_id"], json!(other_id));
    assert_eq!(signed["contents"]["messages"], Value::Null, "{signed}");
    pool.close().await;
    role.drop().await;
}

/// The role names the lines that an erasure empties; the database checks that they are about the campaign.
#[tokio::test]
async fn an_erasure_clears_only_lines_of_its_own_schedules_and_jobs() {
    let database = TestDatabase::migrated().await;
    let (owner, role) = (database.pool().await, ServiceRole::of(&database.options).await);
    let pool = PgPool::connect_with(role.options.clone()).await.unwrap();
    let (world, other) = (
        World::over(pool.clone(), Limit::default()).await,
        World::over(pool.clone(), Limit::default()).await,
    );
    let (id, other_id) = (world.campaign.id, other.campaign.id);
    let (own, others) = (world.add("Part one.").await, other.add("Part one.").await);
    let of_campaign = |id: Uuid| json!({ "campaign_id": id });
    // Each with whether its details are erased. A name can be reused by another campaign after its schedule was
    // removed.
    let lines = [
        ("schedule", "news".to_owned(), of_campaign(other_id), false),
        ("schedule", "news".to_owned(), json!({ "reason": "theirs" }), false),
        ("schedule", "news".to_owned(), of_campaign(id), true),
        ("schedule", "news".to_owned(), json!({ "reason": "ours" }), true),
        ("schedule", "news".to_owned(), of_campaign(other_id), false),
        ("schedule", "news".to_owned(), json!({ "reason": "theirs again" }), false),
        ("schedule", "cleanup".to_owned(), json!({ "reason": "of no campaign" }), false),
        ("schedule", "weekly".to_owned(), json!({ "reason": "ours, by the schedule" }), true),
        ("job", own.job_id.to_string(), json!({ "reason": "ours" }), true),
        ("job", others.job_id.to_string(), json!({ "reason": "theirs" }), false),
        ("job", "999999999".to_owned(), json!({ "reason": "gone, and of no task" }), false),
    ];
    let add = "insert into dalsegno.schedules (name, created_at, active_since, catch_up_secs, source, cron, time_zone, kind, queue, payload)
               values ('weekly', now() - interval '1 hour', now(), 60, 'user', '0 0 3 * * *', 'UTC', 'add_task', 'upkeep', $1)";
    sqlx::query(add).bind(of_campaign(id)).execute(&owner).await.unwrap();
    let write =
        "insert into dalsegno.audit (at, actor_kind, actor, action, subject_kind, subject, data)
                 values (now(), 'cli', 'ann', 'schedule.test', $1, $2, $3)";
    for (kind, subject, data, _) in &lines {
        sqlx::query(write).bind(kind).bind(subject).bind(data).execute(&owner).await.unwrap();
    }
    ask(&pool, id).await;
    // All subjects, as an attacker would name them.
    let all = "select dalsegno.erase_audit($1, array(select distinct subject from dalsegno.audit))";
    sqlx::query(all).bind(id).execute(&pool).await.unwrap();
    let left = "select subject, data = '{}' from dalsegno.audit where action = 'schedule.test' order by id";
    let left: Vec<(String, bool)> = sqlx::query_as(left).fetch_all(&owner).await.unwrap();
    let expected: Vec<(String, bool)> =
        lines.into_iter().map(|(_, subject, _, is_gone)| (subject, is_gone)).collect();
    assert_eq!(left, expected);
    pool.close().await;
    role.drop().await;
}
