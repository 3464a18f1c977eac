//! Time to the first byte of each page, for one person at a time.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{browser::Browser, common::size, fixture::Fixture, quantile};

/// The first requests of a page, which plan its statements. They are not measured.
const WARM_UP: usize = 10;

/// A kind of page, with some addresses of it.
pub struct PageKind {
    pub name: &'static str,
    pub paths: Vec<String>,
}

fn n_requests() -> usize {
    size::of(200, 2)
}

/// Requests a page again and again, with its addresses in turn.
pub async fn measure(ground: &Fixture, page: &PageKind) -> anyhow::Result<Value> {
    let mut browser = Browser::open(ground.address).await?;
    let mut paths = page.paths.iter().cycle();
    let mut millis = Vec::new();
    let mut largest = 0;
    for n in 0..WARM_UP + n_requests() {
        let Some(path) = paths.next() else { break };
        let response = browser.get(path).await?;
        largest = largest.max(response.bytes);
        if n >= WARM_UP {
            millis.push(response.first_byte.as_secs_f64() * 1e3);
        }
    }
    Ok(json!({
        "scenario": "pages", "page": page.name, "requests": millis.len(), "p50_ms": quantile(&mut millis, 0.5),
        "p95_ms": quantile(&mut millis, 0.95), "max_ms": quantile(&mut millis, 1.0), "largest_bytes": largest,
    }))
}

/// Lists the pages. Those of one thing have the addresses of several, so that caches of the database do not help.
pub async fn all(ground: &Fixture) -> anyhow::Result<Vec<PageKind>> {
    let known = Known::read(ground).await?;
    let campaign = known.campaign;
    let one = |name, path: &str| PageKind { name, paths: vec![path.to_owned()] };
    let of_campaign = |name, rest: &str| one(name, &format!("/campaigns/{campaign}{rest}"));
    let each = |name, ids: &[Uuid], path: &dyn Fn(&Uuid) -> String| PageKind {
        name,
        paths: ids.iter().map(path).collect(),
    };
    let each_text = |name, texts: &[String], path: &dyn Fn(&str) -> String| PageKind {
        name,
        paths: texts.iter().map(|text| path(text)).collect(),
    };
    let webhook = format!("/webhooks/{}", known.webhook);
    let long = known.long_session;
    let last = known.last_message;
    Ok(vec![
        one("overview", "/"),
        one("overview of a week", "/?range=7d"),
        one("campaigns", "/campaigns"),
        of_campaign("campaign of 100,000 tasks", ""),
        of_campaign("its tasks", "?part=tasks"),
        each("its tasks, deep", &known.deep_in_campaign, &|id| {
            format!("/campaigns/{campaign}?part=tasks&cursor={id}")
        }),
        of_campaign("its sessions", "?part=sessions"),
        of_campaign("its agents", "?part=agents"),
        of_campaign("its memory", "?part=memory"),
        of_campaign("its blackboard", "?part=blackboard"),
        of_campaign("its fidelity", "?part=fidelity"),
        each("other campaigns", &known.campaigns, &|id| format!("/campaigns/{id}")),
        one("tasks", "/tasks"),
        each("tasks, deep", &known.tasks, &|id| format!("/tasks?cursor={id}")),
        one("failed tasks", "/tasks?state=failed"),
        each("failed tasks, deep", &known.tasks, &|id| format!("/tasks?state=failed&cursor={id}")),
        one("cancelled tasks", "/tasks?state=cancelled"),
        one("waiting tasks", "/tasks?state=queued"),
        one("running tasks", "/tasks?state=running"),
        one("tasks of an agent", "/tasks?agent=planner"),
        one("tasks of an instance", "/tasks?agent=planner/copy_0"),
        one("tasks with a word", "/tasks?text=letter"),
        one("tasks with a rare word", "/tasks?text=nothing+has+this"),
        one("failed tasks of a campaign", &format!("/tasks?campaign_id={campaign}&state=failed")),
        one(
            "tasks of an instance in a campaign",
            &format!("/tasks?campaign_id={campaign}&agent=planner/copy_0"),
        ),
        each("task", &known.tasks, &|id| format!("/tasks/{id}")),
        each("waiting task", &known.waiting, &|id| format!("/tasks/{id}")),
        each("failed task", &known.failed, &|id| format!("/tasks/{id}")),
        one("sessions", "/sessions"),
        one("open sessions", "/sessions?open=true"),
        one("sessions of a campaign", &format!("/sessions?campaign_id={campaign}")),
        each("sessions, deep", &known.sessions, &|id| format!("/sessions?cursor={id}")),
        one("session of 5,000 messages", &format!("/sessions/{long}")),
        one("its first messages", &format!("/sessions/{long}?cursor=0")),
        one("its last messages", &format!("/sessions/{long}?cursor={}", last - 100)),
        each("session", &known.sessions, &|id| format!("/sessions/{id}")),
        PageKind {
            name: "turn",
            paths: known
                .turns
                .iter()
                .map(|turn| format!("/sessions/{long}/turns/{turn}"))
                .collect(),
        },
        one("find a name", "/find?q=harbour"),
        one("find words of a prompt", "/find?q=letter+from+the+rock"),
        each("find an id", &known.tasks, &|id| format!("/find?q={id}")),
        each("find the end of an id", &known.waiting, &|id| {
            format!("/find?q={}", &id.simple().to_string()[20..])
        }),
        one("find an unknown end", "/find?q=0badc0de0bad"),
        one("sign-ins", "/sign-ins"),
        one("cost", "/cost"),
        one("cost by campaign, 90 days", "/cost?by=campaign&days=90"),
        one("cost by day", "/cost?by=day&days=90"),
        one("calls", "/cost/calls"),
        one("calls of an agent", "/cost/calls?days=90&agent=planner"),
        one("most expensive calls", "/cost/calls?order=costliest"),
        one("budgets", "/cost/budgets"),
        one("evals", "/cost/evals"),
        each_text("eval run", &known.eval_runs, &|id| format!("/cost/evals/{campaign}/{id}")),
        one("users", "/users"),
        each_text("user", &known.users, &|name| format!("/users?name={name}")),
        each_text("search in the facts of a user", &known.users, &|name| {
            format!("/users?name={name}&q=series")
        }),
        one("work", "/work"),
        one("jobs", "/work/jobs"),
        each_text("job", &known.jobs, &|id| format!("/work/jobs/{id}")),
        one("jobs behind others", "/work/jobs?waits_for=lane"),
        one("dead letters", "/work/jobs?state=dead"),
        each_text("dead letter", &known.dead_letters, &|id| format!("/work/jobs/{id}")),
        one("lanes", "/work/lanes"),
        each_text("lane", &known.lanes, &|key| {
            format!("/work/lanes?name={}", key.replace('/', "%2F"))
        }),
        one(
            "bulk action on a campaign",
            &format!("/work/bulk?action=cancel&campaign_id={campaign}"),
        ),
        one("bulk retry of failed tasks", "/work/bulk?action=retry&state=failed"),
        one("flows", "/flows"),
        each("flow", &known.flows, &|id| format!("/flows/{id}")),
        one("agents", "/catalogue"),
        one("an agent's prompts", "/catalogue/agent/copywriter?part=versions"),
        one("schedules", "/schedules"),
        one("cleanup", "/cleanup"),
        one("cleanup with its preview", "/cleanup?preview=true"),
        one("webhooks", "/webhooks"),
        one("webhook", &webhook),
        one("failed deliveries of a webhook", &format!("{webhook}?state=failed")),
        one("keys", "/keys"),
        one("audit", "/audit"),
        one("audit of a caller", "/audit?actor=ann"),
        one("audit of an action", "/audit?action=task.retry"),
        each("audit of a task", &known.tasks, &|id| format!("/audit?subject={id}")),
        one("audit of a campaign by its name", "/audit?subject=Harbour+series+3"),
        one("erasures", "/erasures"),
        one("doctor", "/doctor"),
        one("installation", "/installation"),
        one("search", "/search?q=harbour"),
    ])
}

/// Ids in the database.
struct Known {
    campaign: Uuid,
    campaigns: Vec<Uuid>,
    long_session: Uuid,
    last_message: i64,
    /// Numbers of turns of the long session.
    turns: Vec<i32>,
    sessions: Vec<Uuid>,
    /// Of all ages.
    tasks: Vec<Uuid>,
    deep_in_campaign: Vec<Uuid>,
    waiting: Vec<Uuid>,
    failed: Vec<Uuid>,
    flows: Vec<Uuid>,
    webhook: Uuid,
    jobs: Vec<String>,
    dead_letters: Vec<String>,
    lanes: Vec<String>,
    users: Vec<String>,
    /// Ids of runs of evals in the first campaign.
    eval_runs: Vec<String>,
}

impl Known {
    async fn read(ground: &Fixture) -> anyhow::Result<Self> {
        let pool = &ground.pool;
        let ids = async |sql: &'static str| -> anyhow::Result<Vec<Uuid>> {
            Ok(sqlx::query_scalar(sql).fetch_all(pool).await?)
        };
        let texts = async |sql: &'static str| -> anyhow::Result<Vec<String>> {
            Ok(sqlx::query_scalar(sql).fetch_all(pool).await?)
        };
        let first = async |sql: &'static str| -> anyhow::Result<Uuid> {
            Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
        };
        let last_message = "select max(seq) from dalsegno.messages where session_id = (select min(id::text)::uuid from dalsegno.sessions)";
        let turns = "select number from dalsegno.turns where session_id = (select min(id::text)::uuid from dalsegno.sessions)
                      order by md5(number::text) limit 200";
        Ok(Self {
            turns: sqlx::query_scalar(turns).fetch_all(pool).await?,
            campaign: first("select id from dalsegno.campaigns order by id limit 1").await?,
            campaigns: ids("select id from dalsegno.campaigns order by id desc limit 200").await?,
            long_session: first("select id from dalsegno.sessions order by id limit 1").await?,
            last_message: sqlx::query_scalar(last_message).fetch_one(pool).await?,
            sessions: ids("select id from dalsegno.sessions where turn_count > 1 order by md5(id::text) limit 200").await?,
            tasks: ids("select id from dalsegno.tasks where state = 'done' order by md5(id::text) limit 200").await?,
            deep_in_campaign: ids("select id from dalsegno.tasks where campaign_id = (select min(id::text)::uuid from dalsegno.campaigns) order by md5(id::text) limit 200").await?,
            waiting: ids("select id from dalsegno.tasks where state = 'queued' order by md5(id::text) limit 200").await?,
            failed: ids("select id from dalsegno.tasks where state = 'failed' order by md5(id::text) limit 200").await?,
            flows: ids("select id from dalsegno.flows order by md5(id::text) limit 200").await?,
            webhook: first("select id from dalsegno.webhooks order by id limit 1").await?,
            jobs: texts("select id::text from dalsegno.jobs order by md5(id::text) limit 200").await?,
            dead_letters: texts("select id::text from dalsegno.dead_jobs order by md5(id::text) limit 200").await?,
            lanes: texts("select key from dalsegno.lanes order by md5(key) limit 200").await?,
            users: texts("select distinct user_name from dalsegno.campaign_users limit 50").await?,
            eval_runs: texts("select id::text from dalsegno.eval_runs order by id limit 200").await?,
        })
    }
}
