//! Workers, schedules, webhooks, keys, cleanups and an erasure beside the seeded campaign.

use serde_json::{Value, json};
use uuid::Uuid;

use super::scenery::{HOSTILE, Scenery};
use crate::http::client::send;

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
}

impl UpkeepScenery {
    pub async fn new() -> Self {
        // A large future.
        Box::pin(Self::furnish()).await
    }

    async fn furnish() -> Self {
        let scenery = Scenery::new().await;
        let webhook = scenery
            .make("/v1/webhooks", &json!({ "url": "https://shop.example/hooks/dalsegno" }))
            .await;
        let webhook: Uuid = webhook["id"].as_str().unwrap().parse().unwrap();
        let erased = scenery.make("/v1/campaigns", &json!({ "name": "Winter catalogue" })).await;
        let erased: Uuid = erased["id"].as_str().unwrap().parse().unwrap();
        let furnished =
            Self { scenery, webhook, erased, dead: 9_000_001, delivery: Uuid::from_u128(7) };
        furnished.call_operations().await;
        furnished.write_rows().await;
        furnished
    }

    /// The path of each page with content, with a name for its pictures.
    pub fn pages(&self) -> Vec<(&'static str, String)> {
        let campaign = self.scenery.world.campaign.id;
        vec![
            ("work", "/work".to_owned()),
            ("jobs", "/work/jobs".to_owned()),
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
            ("audit", "/audit".to_owned()),
            ("doctor", "/doctor".to_owned()),
            ("installation", "/installation?all=true".to_owned()),
        ]
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
            "insert into dalsegno.runs (job_id, lease, started_at, ended_at, worker_id, attempt, outcome, queue, kind, error)
             select n, n, '2026-11-20 11:38+00'::timestamptz + n * interval '3 minutes', '2026-11-20 11:38+00'::timestamptz + n * interval '3 minutes' + (1 + n % 4) * interval '100 seconds',
                    case when n % 3 = 0 then '00000000-0000-7000-8000-00000000000b' else '00000000-0000-7000-8000-00000000000a' end::uuid, 1,
                    case n when 4 then 'failed' when 5 then 'snooze' else 'done' end, 'turns', 'run_turn', null from generate_series(1, 6) as n",
            "insert into dalsegno.cleanup_runs (job_id, lease, kind, started_at, ended_at, outcome, sessions, messages, bytes, events, summaries_kept)
             select n, n, 'sessions', '2026-11-20 02:00+00'::timestamptz - n * interval '1 day', '2026-11-20 02:00:41+00'::timestamptz - n * interval '1 day',
                    case n when 3 then 'failed' else 'done' end, 12 * n, 340 * n, 1200000 * n, 18000, 3 from generate_series(1, 5) as n",
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

impl Scenery {
    pub async fn make(&self, path: &str, body: &Value) -> Value {
        send(self.app.address, "POST", path, &[], &body.to_string()).await.expect(201)
    }

    pub async fn apply(&self, method: &str, path: &str, body: &Value) {
        let reply = send(self.app.address, method, path, &[], &body.to_string()).await;
        assert!(reply.status < 300, "{path}: {reply:?}");
    }
}
