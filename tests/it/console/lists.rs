//! Lists of tasks, sessions, campaigns and users: what a row names, and the filters.

use dalsegno::domain::{facts, manifests};
use serde_json::json;
use uuid::Uuid;

use super::{
    scenery::{Scenery, USER},
    sign_in::{KEYS, key, open, sign_in},
};
use crate::app::noon;

#[tokio::test]
async fn a_waiting_task_names_its_campaign_and_its_reason() {
    let scenery = Scenery::new().await;
    let campaign = &scenery.world.campaign;
    let task = scenery.add_apart("Part 11: The storm.").await;
    let page = scenery.page("/tasks?state=queued").await;
    assert!(page.contains(&format!("<bdi>{}</bdi>", campaign.name)), "{page}");
    assert!(page.contains("for a free slot"), "{page}");
    let new = "href=\"/tasks/new?campaign_id=\"";
    assert!(page.contains(new) && page.contains("name=\"campaign_id\""), "{page}");
    let hold = format!("/v1/jobs/{}/hold", task.job_id);
    scenery.send("POST", &hold, &json!({ "reason": "legal reads `it` first" })).await;
    let page = scenery.page("/tasks?state=queued").await;
    assert!(page.contains("legal reads <code>it</code> first"), "{page}");
    let pause = format!("/v1/campaigns/{}/pause", campaign.id);
    scenery.send("POST", &pause, &json!({ "reason": "client call" })).await;
    let paused = scenery.page(&format!("/tasks?campaign_id={}", campaign.id)).await;
    assert!(paused.contains("campaign or queue"), "{paused}");
    let other = scenery.page(&format!("/tasks?campaign_id={}", scenery.hostile_campaign)).await;
    assert!(!other.contains("The storm"), "{other}");
}

#[tokio::test]
async fn sessions_are_narrowed_by_campaign_and_agent() {
    let scenery = Scenery::new().await;
    let campaign = &scenery.world.campaign;
    let session = format!("/sessions/{}", scenery.session_id);
    let all = scenery.page("/sessions").await;
    assert!(all.contains(&session) && all.contains(&campaign.name), "{all}");
    let own = scenery.page(&format!("/sessions?campaign_id={}", campaign.id)).await;
    assert!(own.contains(&session), "{own}");
    for query in [format!("campaign_id={}", scenery.hostile_campaign), "agent=planner".to_owned()] {
        let none = scenery.page(&format!("/sessions?{query}")).await;
        assert!(!none.contains(&session) && none.contains("Show all"), "{none}");
    }
}

#[tokio::test]
async fn campaigns_have_their_waiting_tasks_and_their_cost() {
    let scenery = Scenery::new().await;
    scenery.charge().await;
    let page = scenery.page("/campaigns").await;
    let waiting = format!("/tasks?state=queued&amp;campaign_id={}", scenery.world.campaign.id);
    let cost = format!("/cost?by=agent&amp;campaign_id={}", scenery.world.campaign.id);
    assert!(page.contains(&waiting) && page.contains(&cost), "{page}");
    let users = scenery.page("/users").await;
    assert!(users.contains("/users?name=kim%40example.org") && users.contains(USER), "{users}");
}

#[tokio::test]
async fn a_fact_links_the_turns_that_were_shown_it() {
    let scenery = Scenery::new().await;
    let (pool, campaign) = (&scenery.app.pool, &scenery.world.campaign);
    let listed = scenery.get_json(&format!("/v1/users/{USER}/facts")).await;
    let fact: Uuid = listed["items"][0]["id"].as_str().unwrap().parse().unwrap();
    let address = format!("/users?name={USER}&fact={fact}");
    let page = scenery.page(&address).await;
    assert!(
        page.contains("No session was shown this fact in the time for which records are kept."),
        "{page}"
    );
    let shown = (scenery.session_id, campaign.id);
    facts::record_showings(pool, shown, &[fact], noon()).await.unwrap();
    let page = scenery.page(&address).await;
    assert!(page.contains("transcript only"), "{page}");
    let part =
        |sent| json!({ "kind": "fact", "id": fact, "tokens": 9, "sent": sent, "why": "told" });
    for (turn, sent) in [(71, true), (72, false)] {
        let new = manifests::New {
            session_id: scenery.session_id,
            turn,
            call: 0,
            manifest: &json!({ "parts": [part(sent)] }),
            sha256: [7; 32],
            estimated_tokens: 9,
            real_tokens: None,
        };
        manifests::insert(pool, &new, noon()).await.unwrap();
    }
    let page = scenery.page(&address).await;
    let turn = |turn: i32| format!("href=\"/sessions/{}/turns/{turn}\"", scenery.session_id);
    assert!(page.contains(&turn(71)) && !page.contains(&turn(72)), "{page}");
    let section = page.split("Sessions that were shown it").nth(1).unwrap();
    assert!(section.contains(&campaign.name) && section.contains("copywriter"), "{section}");
    let removed = Uuid::from_u128(9);
    facts::record_showings(pool, (removed, campaign.id), &[fact], noon()).await.unwrap();
    let page = scenery.page(&address).await;
    assert!(page.contains("session removed") && page.contains(&removed.to_string()), "{page}");
    assert!(!page.contains(&format!("/sessions/{removed}")), "{page}");
    assert!(!page.contains("transcript only"), "{page}");
}

#[tokio::test]
async fn the_preview_of_a_bulk_action_has_no_second_selection() {
    let scenery = Scenery::new().await;
    let cancel = format!("/v1/tasks/{}/cancel", scenery.waiting);
    scenery.send("POST", &cancel, &json!({})).await;
    let preview = scenery.page("/work/bulk?action=retry&state=cancelled&text=quay").await;
    assert!(
        preview.contains("Retry 1 task?") && !preview.contains("id=\"selection\""),
        "{preview}"
    );
    assert!(preview.contains(&scenery.world.campaign.name), "{preview}");
    for none in ["state=failed&text=quay", "text=quay&ended_after=2026-12-24T00:00"] {
        let preview = scenery.page(&format!("/work/bulk?action=retry&{none}")).await;
        assert!(preview.contains("No task matches"), "{none}: {preview}");
    }
    let since =
        scenery.page("/work/bulk?action=retry&text=quay&ended_after=2026-01-01T00:00").await;
    assert!(since.contains("Retry 1 task?"), "{since}");
}

#[tokio::test]
async fn a_task_that_waits_for_a_budget_says_so_in_lists() {
    let scenery = Scenery::new().await;
    let task = scenery.add_apart("Part 11: The storm.").await;
    let put_off = "update dalsegno.jobs set state = 'scheduled', wait_reason = 'snooze', run_at = dalsegno.never() where id = $1";
    sqlx::query(put_off).bind(task.job_id).execute(&scenery.app.pool).await.unwrap();
    let limit = "for a rate limit";
    assert!(scenery.page("/tasks?state=queued").await.contains(limit));
    assert!(scenery.page("/work/jobs?waits_for=condition").await.contains(limit));
    let waits = "insert into dalsegno.budget_waits (task_id, job_id, since, needed_micros, needed_tokens, owner, key)
         select id, job_id, '2026-11-20 11:55+00', 0, 900001, 'campaign', campaign_id::text from dalsegno.tasks where id = $1";
    sqlx::query(waits).bind(task.id).execute(&scenery.app.pool).await.unwrap();
    let tasks = scenery.page("/tasks?state=queued").await;
    assert!(tasks.contains("for space in a budget") && !tasks.contains(limit), "{tasks}");
    let jobs = scenery.page("/work/jobs?waits_for=condition").await;
    assert!(jobs.contains("for space in <a href=\"/cost/budgets\">a budget</a>"), "{jobs}");
    assert!(scenery.page("/work").await.contains("Space in a budget<"));
    let waits = scenery.get_json("/v1/waits").await;
    assert_eq!(waits["waiting_for_budget"], 1, "{waits}");
}

/// The last run has the cause. One of a worker of an older version has none, even after a run that had one.
#[tokio::test]
async fn put_off_jobs_are_told_apart_by_their_cause() {
    let scenery = Scenery::new().await;
    let pool = &scenery.app.pool;
    let enqueue = "select job_id from dalsegno.enqueue('sample', queue => 'turns')";
    let put_off = "update dalsegno.jobs set state = 'scheduled', wait_reason = 'snooze', run_at = '2026-11-20 12:30+00' where id = $1";
    let run = "insert into dalsegno.runs (job_id, lease, started_at, ended_at, attempt, outcome, queue, kind, error, wait_cause)
         values ($1, $2, '2026-11-20 11:59+00', '2026-11-20 11:59+00', 1, 'snooze', 'turns', 'sample', 'put off', $3)";
    let mut jobs: Vec<i64> = Vec::new();
    for causes in [vec!["provider"], vec!["limit"], vec!["batch"], vec!["batch", ""]] {
        let job: i64 = sqlx::query_scalar(enqueue).fetch_one(pool).await.unwrap();
        sqlx::query(put_off).bind(job).execute(pool).await.unwrap();
        for (lease, cause) in (9_000_000_000_i64..).zip(causes) {
            let cause = Some(cause).filter(|cause| !cause.is_empty());
            sqlx::query(run).bind(job).bind(lease).bind(cause).execute(pool).await.unwrap();
        }
        jobs.push(job);
    }
    let listed = async |reason: &str| {
        let found = scenery.get_json(&format!("/v1/jobs?waits_for={reason}")).await;
        let items = found["items"].as_array().unwrap().clone();
        items.iter().map(|job| job["id"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(listed("provider").await, [jobs[0]]);
    assert_eq!(listed("condition").await, [jobs[1]]);
    assert_eq!(listed("batch").await, [jobs[2]]);
    // As before the causes were told apart, but for limits.
    assert_eq!(listed("snooze").await, [jobs[0], jobs[2], jobs[3]]);
    let waits = scenery.get_json("/v1/waits").await;
    let waits = waits["items"].as_array().unwrap();
    for reason in ["provider", "condition", "batch", "snooze"] {
        let count = waits.iter().find(|wait| wait["reason"] == reason).unwrap();
        assert_eq!((&count["jobs"], &count["queue"]), (&json!(1), &json!("turns")), "{reason}");
    }
    let page = scenery.page("/work/jobs?state=scheduled").await;
    let words = [
        "for a busy or unreachable provider, until",
        "for space in a budget or a rate limit",
        "for the answer to its batch, next look",
    ];
    for words in words {
        assert_eq!(page.matches(words).count(), 1, "{words} in {page}");
    }
    let groups = scenery.page("/work").await;
    for words in ["A busy or unreachable provider", "The answer to its batch"] {
        assert!(groups.contains(words), "{words} in {groups}");
    }
    let job = scenery.get_json(&format!("/v1/jobs/{}", jobs[0])).await;
    assert_eq!(job["wait_reason"], "provider", "{job}");
    let explained = scenery.get_json(&format!("/v1/jobs/{}/explain", jobs[2])).await;
    let because = explained["because"].as_str().unwrap();
    assert!(because.contains("put off for a batch of its provider: put off"), "{because}");
}

#[tokio::test]
async fn a_job_that_waits_for_its_provider_names_the_model() {
    let scenery = Scenery::new().await;
    let pool = &scenery.app.pool;
    let task = scenery.add_apart("Part 11: The storm.").await;
    let (own, job) = ("update dalsegno.tasks set session_id = $2 where id = $1", task.job_id);
    let own = sqlx::query(own).bind(task.id).bind(scenery.session_id);
    own.execute(pool).await.unwrap();
    let put_off = "update dalsegno.jobs set state = 'scheduled', wait_reason = 'snooze', run_at = '2026-11-20 12:30+00' where id = $1";
    sqlx::query(put_off).bind(job).execute(pool).await.unwrap();
    let run = "insert into dalsegno.runs (job_id, lease, started_at, ended_at, attempt, outcome, queue, kind, error, wait_cause)
         values ($1, 9000000000, '2026-11-20 11:59+00', '2026-11-20 11:59+00', 1, 'snooze', 'turns', 'run_turn', 'no answer', 'provider')";
    sqlx::query(run).bind(job).execute(pool).await.unwrap();
    let of_session = "select jsonb_build_object('provider', provider, 'model', model) from dalsegno.sessions where id = $1";
    let model: serde_json::Value =
        sqlx::query_scalar(of_session).bind(scenery.session_id).fetch_one(pool).await.unwrap();
    let listed = scenery.get_json("/v1/jobs?waits_for=provider").await;
    assert_eq!(listed["items"][0]["awaited_model"], model, "{listed}");
    let provider = model["provider"].as_str().unwrap();
    let page = scenery.page("/work/jobs?waits_for=provider").await;
    assert!(page.contains(&format!("for <bdi>{provider} (")), "{page}");
}

#[tokio::test]
async fn previews_of_a_retry_mark_tasks_whose_limit_is_unchanged() {
    let scenery = Scenery::new().await;
    let campaign = scenery.world.campaign.id;
    let limit = format!("/v1/campaigns/{campaign}/budget");
    scenery.send("PATCH", &limit, &json!({ "micros": 500_000, "on_limit": "fail" })).await;
    scenery.fail_at_budget(scenery.waiting, 500_000, 800_000).await;
    let id = scenery.waiting;
    let previews = [
        "/work/bulk?action=retry&state=failed&text=quay&ended_within=1h".to_owned(),
        format!("/tasks/selected?action=retry&id={id}"),
    ];
    let own = format!("href=\"/tasks/{id}\"");
    let raise = format!("href=\"/tasks/{id}#enough\"");
    for preview in &previews {
        let page = scenery.page(preview).await;
        for part in [own.as_str(), &raise, "1 task would fail again at once", "up to 0.80"] {
            assert!(page.contains(part), "{part} in {preview}: {page}");
        }
        assert!(page.contains("Retry 1 task"), "{page}");
    }
    let asked = json!({ "action": "retry", "filter": { "state": "failed", "text": "quay" } });
    let preview = scenery.send("POST", "/v1/bulk-actions/preview", &asked).await;
    let budget = json!(format!("campaign/{campaign}"));
    assert_eq!(preview["refused"][0]["budget"], budget, "{preview}");
    assert_eq!(preview["refused"][0]["task_id"], json!(id), "{preview}");
    scenery.send("PATCH", &limit, &json!({ "micros": 810_000 })).await;
    for preview in &previews {
        let page = scenery.page(preview).await;
        assert!(page.contains("Retry 1 task") && !page.contains("would fail again"), "{page}");
    }
}

#[tokio::test]
async fn each_page_retries_a_failed_step_with_its_flow() {
    let scenery = Scenery::new().await;
    let flows = format!("/v1/campaigns/{}/flows", scenery.world.campaign.id);
    let new = json!({ "template": "reviewed-text", "inputs": { "task": "Write about the quay." } });
    let flow = scenery.send("POST", &flows, &new).await;
    let shown = scenery.get_json(&format!("/v1/flows/{}", flow["id"].as_str().unwrap())).await;
    let id: Uuid = shown["steps"][0]["task_id"].as_str().unwrap().parse().unwrap();
    let fail = "update dalsegno.tasks
         set state = 'failed', started_at = created_at, ended_at = '2026-11-20 11:30+00', error = 'no login' where id = $1";
    sqlx::query(fail).bind(id).execute(&scenery.app.pool).await.unwrap();
    for path in ["/".to_owned(), format!("/tasks/{id}")] {
        let page = scenery.page(&path).await;
        let alone = page.contains("/do/retry_task");
        assert!(page.contains("/do/retry_flow") && !alone, "{path}: {page}");
    }
    let page = scenery.page(&format!("/tasks/selected?action=retry&id={id}")).await;
    assert!(page.contains("Retried with their flows"), "{page}");
    let field = format!("name=\"id\" value=\"{id}\"");
    assert!(!page.contains(&field), "the step is not retried alone: {page}");
}

#[tokio::test]
async fn a_preview_leads_to_a_limit_that_the_caller_may_raise() {
    let scenery = Scenery::with(&KEYS).await;
    scenery.fail_at_budget(scenery.waiting, 5_000_000, 9_000_000).await;
    let id = scenery.waiting;
    for (scope, may_raise) in [("read", false), ("operate", true)] {
        let (_, secret) = key(&scenery.app, scope, scope).await;
        let cookie = sign_in(&scenery.app, &secret).await;
        for path in [
            "/work/bulk?action=retry&state=failed&text=quay".to_owned(),
            format!("/tasks/selected?action=retry&id={id}"),
        ] {
            let page = open(&scenery.app, &path, &cookie).await.body;
            assert!(page.contains("would fail again"), "{scope} {path}: {page}");
            let raise = format!("href=\"/tasks/{id}#enough\"");
            assert_eq!(page.contains(&raise), may_raise, "{scope} {path}: {page}");
        }
    }
}

#[tokio::test]
async fn agents_and_actions_are_found_by_their_names() {
    let scenery = Scenery::new().await;
    let found = scenery.page("/find?q=copywr").await;
    assert!(found.contains("href=\"/catalogue/agent/copywriter\""), "{found}");
    for (word, target) in
        [("pause", "/work"), ("stop", "/tasks?state=running"), ("retry", "/work/bulk?action=retry")]
    {
        let found = scenery.page(&format!("/find?q={word}")).await;
        assert!(found.contains(&format!("href=\"{target}\"")), "{word}: {found}");
    }
}
