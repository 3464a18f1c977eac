//! Workers, schedules, webhooks, keys, sign-ins, cleanups, an erasure, evals, a compaction and versions of a prompt beside the seeded campaign.

use dalsegno::domain::tasks;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    catalogue::store_contexts,
    scenery::{HOSTILE, Scenery, USER},
};
use crate::{
    app::TestDatabase,
    conversations::world::{HASH, TurnSettings},
    http::client::send,
};

/// A worker with runs.
const WORKER: &str = "00000000-0000-7000-8000-00000000000a";
/// The hash of a later version of the copywriter's prompt.
const LATER_PROMPT: &str = "2222222222222222222222222222222222222222222222222222222222222222";

/// Ids of what was added.
pub struct UpkeepScenery {
    pub scenery: Scenery,
    /// A webhook with deliveries in all states.
    pub webhook: Uuid,
    /// A campaign that is being erased.
    pub erased: Uuid,
    /// A dead letter.
    pub dead: i64,
    /// A delivery that has failed.
    pub delivery: Uuid,
    /// A run of an eval, with one before it.
    pub eval_run: i64,
    /// The number of a compaction of the session.
    pub compaction: i32,
    /// A fact about the user.
    pub fact: Uuid,
    /// The job of the task that waits.
    pub job: i64,
}

impl UpkeepScenery {
    pub async fn new() -> Self {
        Self::on(TestDatabase::migrated().await).await
    }

    /// Makes the scenery in the database of the caller.
    pub async fn on(database: TestDatabase) -> Self {
        // A large future.
        Box::pin(Self::furnish(database)).await
    }

    async fn furnish(database: TestDatabase) -> Self {
        let scenery = Scenery::on(database, &[]).await;
        let webhook = scenery
            .make("/v1/webhooks", &json!({ "url": "https://shop.example/hooks/dalsegno" }))
            .await;
        let webhook: Uuid = webhook["id"].as_str().unwrap().parse().unwrap();
        let erased = scenery.make("/v1/campaigns", &json!({ "name": "Winter catalogue" })).await;
        let erased: Uuid = erased["id"].as_str().unwrap().parse().unwrap();
        let [_, eval_run] = scenery.record_runs().await;
        let compaction = scenery.compact().await;
        add_prompt_version(&scenery).await;
        let facts = scenery.get_json(&format!("/v1/users/{USER}/facts")).await;
        let fact = facts["items"][0]["id"].as_str().unwrap().parse().unwrap();
        let job = scenery.world.task(scenery.waiting).await.job_id;
        let furnished = Self {
            scenery,
            webhook,
            erased,
            dead: 9_000_001,
            delivery: Uuid::from_u128(7),
            eval_run,
            compaction,
            fact,
            job,
        };
        furnished.call_operations().await;
        furnished.write_rows().await;
        furnished
    }

    /// The path of each page with content, with a name for its pictures.
    pub fn pages(&self) -> Vec<(&'static str, String)> {
        let campaign = self.scenery.world.campaign.id;
        let session = self.scenery.session_id;
        let versions = "/catalogue/agent/copywriter?part=versions";
        vec![
            ("session-compacted", format!("/sessions/{session}")),
            ("compaction", format!("/sessions/{session}/compactions/{}", self.compaction)),
            ("evals", "/cost/evals".to_owned()),
            ("eval-run", format!("/cost/evals/{campaign}/{}", self.eval_run)),
            ("prompt-versions", versions.to_owned()),
            ("prompt-compared", format!("{versions}&version={LATER_PROMPT}&with={HASH}")),
            ("fact", format!("/users?name={USER}&fact={}", self.fact)),
            ("work", "/work".to_owned()),
            ("worker", format!("/work?worker={WORKER}&until=2026-11-20T12:00:00Z")),
            ("jobs", "/work/jobs".to_owned()),
            ("job", format!("/work/jobs/{}", self.job)),
            ("job-dead", format!("/work/jobs/{}", self.dead)),
            ("dead-letters", "/work/jobs?state=dead".to_owned()),
            ("lanes", "/work/lanes".to_owned()),
            (
                "lane",
                format!("/work/lanes?name={campaign}%2F{}%2Fmain", self.scenery.world.agent().name),
            ),
            ("bulk", format!("/work/bulk?action=cancel&campaign_id={campaign}")),
            ("schedules", "/schedules".to_owned()),
            ("schedule", "/schedules/evenings".to_owned()),
            ("cleanup", "/cleanup?preview=true".to_owned()),
            ("erasures", "/erasures".to_owned()),
            ("erasure", format!("/erasures/{}", self.erased)),
            ("webhooks", "/webhooks".to_owned()),
            ("webhook", format!("/webhooks/{}", self.webhook)),
            ("delivery", format!("/webhooks/{}?delivery={}", self.webhook, self.delivery)),
            ("keys", "/keys".to_owned()),
            ("sign-ins", "/sign-ins".to_owned()),
            ("sign-in", "/sign-in".to_owned()),
            ("audit", "/audit".to_owned()),
            ("doctor", "/doctor".to_owned()),
            ("installation", "/installation?all=true".to_owned()),
        ]
    }

    /// The path of every page once: those of both lists, with content where there is any.
    pub fn all_pages(&self) -> Vec<(&'static str, String)> {
        let own = self.pages();
        let mut all = self.scenery.pages();
        all.retain(|(_, path)| own.iter().all(|(_, other)| other != path));
        all.extend(own);
        all
    }

    async fn call_operations(&self) {
        let Self { scenery, erased, .. } = self;
        let campaign = scenery.world.campaign.id;
        let agent = &scenery.world.agent().name;
        let task = json!({ "campaign_id": campaign, "agent": agent, "prompt": format!("Plan the week. {HOSTILE}") });
        for (name, cron) in [
            ("weekly", "0 30 7 * * Mon"),
            ("pulse", "0 */10 * * * *"),
            ("evenings", "0 0 18 * * Mon-Fri"),
        ] {
            let schedule = json!({ "cron": cron, "time_zone": "Europe/Berlin", "task": task });
            scenery.apply("PUT", &format!("/v1/schedules/{name}"), &schedule).await;
        }
        let why = json!({ "reason": "until the review" });
        scenery.apply("POST", "/v1/schedules/evenings/pause", &why).await;
        scenery
            .make(
                "/v1/keys",
                &json!({ "name": "shop", "scopes": ["enqueue"], "campaigns": [campaign] }),
            )
            .await;
        scenery
            .make(
                "/v1/keys",
                &json!({ "name": "ann", "scopes": ["operate"], "expires_in_secs": 7_776_000 }),
            )
            .await;
        scenery
            .apply(
                "POST",
                &format!("/v1/campaigns/{erased}/erasure"),
                &json!({ "reason": "the contract has ended" }),
            )
            .await;
        let bulk = json!({ "action": "cancel", "filter": { "agent": agent, "text": "no task has these words" }, "reason": "the brief has changed" });
        scenery.apply("POST", "/v1/bulk-actions", &bulk).await;
    }

    async fn write_rows(&self) {
        let statements = [
            "insert into dalsegno.workers (id, started_at, lease_until, slots, pid, host, version, queues, kinds) values
               ('00000000-0000-7000-8000-00000000000a', '2026-11-20 09:00+00', '2026-11-20 12:00:30+00', 3, 4711, 'worker-a', '0.1.0', '{turns}', '{run_turn}'),
               ('00000000-0000-7000-8000-00000000000b', '2026-11-20 10:00+00', '2026-11-20 12:00:40+00', 2, 4712, 'worker-with-a-long-name-b', '0.1.0', '{turns,upkeep}', '{run_turn}')",
            "insert into dalsegno.cleanup_runs (job_id, lease, kind, started_at, ended_at, outcome, sessions, messages, bytes, events, summaries_kept)
             select n, n, 'sessions', '2026-11-20 02:00+00'::timestamptz - n * interval '1 day', '2026-11-20 02:00:41+00'::timestamptz - n * interval '1 day',
                    case n when 3 then 'failed' else 'done' end, 12 * n, 340 * n, 1200000 * n, 18000, 3 from generate_series(1, 5) as n",
            "insert into dalsegno.sign_ins (id, created_at, expires_at, ended_at, admin_key_sha256, sha256, peer, browser)
             select gen_random_uuid(), '2026-11-20 09:00+00'::timestamptz - n * interval '1 hour', '2026-11-20 12:00+00'::timestamptz + (3 - 2 * n) * interval '1 hour',
                    case n when 1 then '2026-11-20 10:00+00'::timestamptz end, sha256('admin'), sha256(('scenery' || n)::bytea), '192.0.2.7',
                    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 <b>' from generate_series(0, 2) as n",
            "insert into dalsegno.table_sizes (table_name, day, bytes)
             select t.name, '2026-11-20'::date - n, t.bytes - n * t.bytes / 40
               from (values ('messages', 4100000), ('tasks', 900000), ('feed', 1700000)) as t (name, bytes), generate_series(0, 20) as n",
        ];
        let pool = &self.scenery.app.pool;
        for statement in statements {
            sqlx::query(statement)
                .execute(pool)
                .await
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        // Of the first jobs of the scenery.
        let before = self.scenery.world.task(self.scenery.done).await.job_id - 1;
        let runs = "insert into dalsegno.runs (job_id, lease, started_at, ended_at, worker_id, attempt, outcome, queue, kind, error)
             select $1 + n, n, '2026-11-20 11:38+00'::timestamptz + n * interval '3 minutes', '2026-11-20 11:38+00'::timestamptz + n * interval '3 minutes' + (1 + n % 4) * interval '100 seconds',
                    case when n % 3 = 0 then '00000000-0000-7000-8000-00000000000b' else '00000000-0000-7000-8000-00000000000a' end::uuid, 1,
                    case n when 4 then 'failed' when 5 then 'snooze' else 'done' end, 'turns', 'run_turn', null from generate_series(1, 6) as n";
        sqlx::query(runs).bind(before).execute(pool).await.unwrap();
        let dead = "insert into dalsegno.dead_jobs (id, enqueued_at, died_at, lease, priority, attempt, max_attempts, crash_count, queue, kind, reason, error, payload)
             values ($1, '2026-11-20 10:00+00', '2026-11-20 11:30+00', 1, 100, 20, 20, 0, 'upkeep', 'send_webhook', 'exhausted', $2, '{}')";
        sqlx::query(dead)
            .bind(self.dead)
            .bind(format!("the receiver answers 503 {HOSTILE}"))
            .execute(pool)
            .await
            .unwrap();
        let counted = "insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) values ('upkeep', 'send_webhook', 'fail', 'new', 'dead', 1)";
        sqlx::query(counted).execute(pool).await.unwrap();
        let delivery = "insert into dalsegno.webhook_deliveries (id, webhook_id, task_id, job_id, created_at, next_at, ended_at, attempts, last_status, kind, state, last_error, body)
             values (case $8 when 'failed' then $10 else gen_random_uuid() end, $1, $2, $3, '2026-11-20 11:00+00', $4, $5, $6, $7, 'task.done', $8, $9, '{}')";
        let at = |text: &str| chrono::DateTime::parse_from_rfc3339(text).unwrap().to_utc();
        let ended = Some(at("2026-11-20T11:01:00Z"));
        for (state, job, next, ended, attempts, status, error) in [
            ("delivered", None, None, ended, 1, Some(200_i16), None),
            ("failed", None, None, ended, 12, Some(503), Some(HOSTILE)),
            (
                "waiting",
                Some(1_i64),
                Some(at("2026-11-20T12:30:00Z")),
                None,
                3,
                None,
                Some("connection refused"),
            ),
            ("held", None, None, None, 0, None, None),
        ] {
            let query = sqlx::query(delivery)
                .bind(self.webhook)
                .bind(self.scenery.done)
                .bind(job)
                .bind(next);
            query
                .bind(ended)
                .bind(attempts)
                .bind(status)
                .bind(state)
                .bind(error)
                .bind(self.delivery)
                .execute(pool)
                .await
                .unwrap();
        }
    }
}

/// Adds a conversation with a later version of the copywriter's prompt, and stores the contexts of both versions.
async fn add_prompt_version(scenery: &Scenery) {
    let settings = TurnSettings { prompt_hash: LATER_PROMPT, ..TurnSettings::default() };
    let world = &scenery.world;
    let new = tasks::New { instance: "third", ..world.ask("Part 10a: The harbour bell.") };
    let task = world.add_new(&new).await.unwrap().task;
    let (_, begun) = world.begin(&task, world.lease(), settings).await;
    world.commit(&begun, "The bell rang twice.", settings).await.unwrap();
    store_contexts(scenery, HASH, &format!("You write long parts. {HOSTILE}")).await;
    store_contexts(scenery, LATER_PROMPT, &format!("You write short parts. {HOSTILE}")).await;
}

impl Scenery {
    pub async fn make(&self, path: &str, body: &Value) -> Value {
        send(self.app.address, "POST", path, &[], &body.to_string()).await.expect(201)
    }

    pub async fn apply(&self, method: &str, path: &str, body: &Value) {
        let reply = send(self.app.address, method, path, &[], &body.to_string()).await;
        assert!(reply.status < 300, "{path}: {reply:?}");
    }
}
