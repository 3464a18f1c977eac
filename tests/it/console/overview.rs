//! The overview: what waits for a person, with its fix.

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::{
    domain::{
        agent_pauses,
        attention::{Attention, count_group, group_failures},
        tasks,
    },
    queue::admin,
};
use serde_json::{Value, json};

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{KEYS, form_token, key, open, post, sign_in},
};
use crate::{app::noon, http::client::send};

impl Scenery {
    /// Makes a failed task, a pause of an agent and a held job.
    async fn make_trouble(&self) {
        let failed = "update dalsegno.tasks
             set state = 'failed', started_at = created_at, ended_at = '2026-11-20 11:30+00', error = 'the provider rejected the prompt'
           where id = $1";
        sqlx::query(failed).bind(self.waiting).execute(&self.app.pool).await.unwrap();
        let why = json!({ "reason": "its notes are reviewed" });
        let pause = format!("/v1/campaigns/{}/agents/planner/pause", self.world.campaign.id);
        self.change(&pause, &why).await;
        let other = tasks::New { instance: "second", ..self.world.ask("Part 12: The end.") };
        let job_id = self.world.add_new(&other).await.unwrap().task.job_id;
        self.change(
            &format!("/v1/jobs/{job_id}/hold"),
            &json!({ "reason": "legal reads it first" }),
        )
        .await;
    }

    async fn attention(&self) -> Vec<Value> {
        let overview = self.app.get("/v1/overview").await;
        let mut overview: Value = serde_json::from_str(&overview.body).unwrap();
        serde_json::from_value(overview["attention"].take()).unwrap()
    }

    async fn change(&self, path: &str, body: &Value) {
        let reply = send(self.app.address, "POST", path, &[], &body.to_string()).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
}

#[tokio::test]
async fn what_waits_for_a_person_is_listed_with_its_fix() {
    let scenery = Scenery::new().await;
    // Tests have no worker, which is a warning of the doctor.
    let before = scenery.attention().await;
    assert_eq!(before.len(), 1, "{before:?}");
    assert_eq!(before[0]["kind"], "deserted_queue");
    assert_eq!(before[0]["command"], "dalsegno worker turns");
    scenery.make_trouble().await;
    let attention = scenery.attention().await;
    let kinds: Vec<_> = attention.iter().map(|it| it["kind"].clone()).collect();
    let expected = ["failed_task", "held_jobs", "paused_agent", "deserted_queue"];
    assert_eq!(kinds, expected, "{attention:?}");
    let failed = &attention[0];
    assert_eq!(failed["because"], "the provider rejected the prompt");
    assert_eq!(failed["command"], format!("dalsegno task retry {}", scenery.waiting));
    let paused = &attention[2];
    assert!(paused["because"].as_str().unwrap().contains("its notes are reviewed"), "{paused}");
}

#[tokio::test]
async fn a_task_of_an_erased_campaign_needs_no_person_and_is_not_retried_with_others() {
    let scenery = Scenery::new().await;
    scenery.make_trouble().await;
    let campaign = scenery.world.campaign.id;
    let preview = json!({ "action": "retry", "filter": { "campaign_id": campaign } });
    let matched = async || {
        let preview = scenery.send("POST", "/v1/bulk-actions/preview", &preview).await;
        (preview["matched"].as_i64().unwrap(), preview["tasks"].as_array().unwrap().len())
    };
    let before = matched().await;
    assert!(before.0 > 0, "{before:?}");
    // Texts that read like those of an erasure are texts.
    let name = "update dalsegno.tasks set prompt = '(erased)', error = '(erased)' where id = $1";
    sqlx::query(name).bind(scenery.waiting).execute(&scenery.app.pool).await.unwrap();
    let attention = scenery.attention().await;
    assert!(attention.iter().any(|it| it["kind"] == "failed_task"), "{attention:?}");
    assert_eq!(matched().await, before);
    let erase = "insert into dalsegno.erasures (id, campaign_id, reason, asked_at) values ($1, $1, 'the contract has ended', now())";
    sqlx::query(erase).bind(campaign).execute(&scenery.app.pool).await.unwrap();
    let attention = scenery.attention().await;
    assert!(attention.iter().all(|it| it["kind"] != "failed_task"), "{attention:?}");
    assert_eq!(matched().await, (0, 0));
    let tasks = scenery.get_json(&format!("/v1/tasks?campaign_id={campaign}&state=failed")).await;
    assert!(tasks.to_string().contains(&scenery.waiting.to_string()), "{tasks}");
}

#[tokio::test]
async fn the_overview_begins_with_what_needs_a_person() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    scenery.make_trouble().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/")).await;
    assert!(
        browser.text("h1").await.starts_with("4 things need you."),
        "{}",
        browser.text("h1").await
    );
    for theme in ["light", "dark"] {
        browser.prefer(theme).await;
        browser.save_picture(&format!("overview-trouble-{theme}")).await;
    }
    assert!(browser.text(".attention").await.contains("dalsegno task retry"));
    browser.click(".attention a[href^='/tasks/']").await;
    browser.wait_until("document.querySelector('.explain.failed')").await;
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn warnings_of_the_doctor_have_a_button_for_their_fix() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let hook = json!({ "url": "https://receiver.example/hooks" }).to_string();
    let hook = send(scenery.app.address, "POST", "/v1/webhooks", &[], &hook).await.expect(201);
    let disable = "update dalsegno.webhooks
         set disabled_at = '2026-11-19 12:00+00', disabled_because = 'the receiver is gone', failing_since = '2026-11-19 12:00+00' where id = $1::uuid";
    sqlx::query(disable).bind(hook["id"].as_str()).execute(&scenery.app.pool).await.unwrap();
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/")).await;
    let warning = browser.text(".attention").await;
    for part in ["disabled", "receiver.example", "the receiver is gone", "dalsegno webhook enable"]
    {
        assert!(warning.contains(part), "{part} in {warning}");
    }
    browser.save_picture("overview-warning").await;
    browser.click("form[action='/do/enable_webhook'] button").await;
    browser.wait_until("!document.querySelector('form[action=\"/do/enable_webhook\"]')").await;
    let kinds: Vec<_> = scenery.attention().await.iter().map(|it| it["kind"].clone()).collect();
    assert!(!kinds.contains(&json!("disabled_webhook")), "{kinds:?}");
}

#[tokio::test]
async fn deliveries_that_were_given_up_are_listed_with_their_replay() {
    let scenery = Scenery::new().await;
    let hook = json!({ "url": "https://receiver.example/hooks" }).to_string();
    let hook = send(scenery.app.address, "POST", "/v1/webhooks", &[], &hook).await.expect(201);
    let id = hook["id"].as_str().unwrap();
    let failed = "insert into dalsegno.webhook_deliveries (id, webhook_id, created_at, ended_at, attempts, kind, state, last_error, body)
         select gen_random_uuid(), $1::uuid, $2::timestamptz - 3 * step, $2::timestamptz - step, 10, 'task.done', 'failed', 'status 503', '{}'
           from unnest(array['1 day', '2 days', '8 days']::interval[]) as step";
    let bound = sqlx::query(failed).bind(id).bind(noon());
    bound.execute(&scenery.app.pool).await.unwrap();
    let attention = scenery.attention().await;
    let found: Vec<_> = attention.iter().filter(|it| it["kind"] == "failed_deliveries").collect();
    assert_eq!(found.len(), 1, "{attention:?}");
    assert_eq!(found[0]["count"], 2);
    assert_eq!(found[0]["name"], "https://receiver.example/hooks");
    let command = found[0]["command"].as_str().unwrap();
    assert_eq!(
        command,
        format!("dalsegno webhook replay --webhook {id} --since 2026-11-14T12:00:00Z")
    );
    let page = scenery.app.get("/").await.body;
    assert!(page.contains(&format!("/webhooks/{id}?state=failed")), "{page}");
    let form = page.split("action=\"/do/replay_webhook\"").nth(1).unwrap();
    let form = form.split("</form>").next().unwrap();
    assert!(form.contains(id) && form.contains("value=\"2026-11-14T12:00:00+00:00\""), "{form}");
}

#[tokio::test]
async fn a_delivery_is_given_up_on_the_page_of_its_webhook_and_can_be_replayed() {
    let scenery = Scenery::new().await;
    let hook = json!({ "url": "https://receiver.example/hooks" });
    let hook = scenery.send("POST", "/v1/webhooks", &hook).await;
    let path = format!("/webhooks/{}", hook["id"].as_str().unwrap());
    let sent = scenery.send("POST", &format!("/v1{path}/test"), &json!({})).await;
    let (id, job) = (sent["id"].as_str().unwrap(), sent["job_id"].as_i64().unwrap());
    let page = scenery.page(&path).await;
    let form = page.split("action=\"/do/cancel_job\"").nth(1).unwrap();
    let form = form.split("</form>").next().unwrap();
    assert!(form.contains(&format!("value=\"{job}\"")) && form.contains("Give up"), "{form}");
    let reason = json!({ "reason": "no receiver any more" });
    scenery.send("POST", &format!("/v1/jobs/{job}/cancel"), &reason).await;
    let delivery = format!("/v1/webhook-deliveries/{id}");
    let given_up = scenery.send("GET", &delivery, &json!(null)).await;
    assert_eq!(given_up["state"], "failed");
    assert_eq!(given_up["last_error"], "given up: no receiver any more");
    assert!(!scenery.page(&path).await.contains("Give up"));
    assert!(form.contains("name=\"reason\""), "{form}");
    scenery.send("POST", &format!("{delivery}/replay"), &json!({})).await;
    let again = scenery.send("GET", &delivery, &json!(null)).await;
    assert_eq!(again["state"], "waiting");
    // A dead job of it is forgotten: its retry would send nothing.
    let (pool, job) = (&scenery.app.pool, again["job_id"].as_i64().unwrap());
    let dies = "with job as (delete from dalsegno.jobs where id = $1 returning *),
                     payload as (delete from dalsegno.job_payloads where job_id = $1 returning *)
                insert into dalsegno.dead_jobs (id, enqueued_at, lease, priority, attempt, max_attempts, crash_count, queue, kind, reason,
                                                error, payload)
                select j.id, j.enqueued_at, 1, j.priority, 100, 100, 0, j.queue, j.kind, 'failed', 'it failed', p.payload
                  from job as j, payload as p";
    sqlx::query(dies).bind(job).execute(pool).await.unwrap();
    scenery.send("POST", &format!("/v1/jobs/{job}/cancel"), &reason).await;
    assert_eq!(scenery.send("GET", &delivery, &json!(null)).await["state"], "failed");
    let letters = "select count(*) from dalsegno.dead_jobs where id = $1";
    let letters: i64 = sqlx::query_scalar(letters).bind(job).fetch_one(pool).await.unwrap();
    assert_eq!(letters, 0);
}

#[tokio::test]
async fn a_failing_webhook_is_replayed_from_its_oldest_missed_event_on() {
    let scenery = Scenery::new().await;
    let hook = json!({ "url": "https://receiver.example/hooks" });
    let hook = scenery.send("POST", "/v1/webhooks", &hook).await;
    let id = hook["id"].as_str().unwrap();
    // The last one was given up before the receiver began to fail.
    let deliveries = "with failing as (update dalsegno.webhooks set failing_since = $2::timestamptz - interval '1 hour' where id = $1::uuid)
         insert into dalsegno.webhook_deliveries (id, webhook_id, created_at, ended_at, attempts, kind, state, last_error, body)
         select gen_random_uuid(), $1::uuid, $2::timestamptz - age, $2::timestamptz - ended, 10, 'task.done', 'failed', 'status 503', '{}'
           from (values (interval '3 hours', interval '1 minute'), ('2 days', '10 minutes'), ('4 days', '3 hours')) as given (age, ended)";
    let bound = sqlx::query(deliveries).bind(id).bind(noon());
    bound.execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page(&format!("/webhooks/{id}")).await;
    // The overview has the deliveries of the whole week.
    let overview = scenery.page("/").await;
    for (page, day) in [(page, 18), (overview, 16)] {
        let form = page.split("action=\"/do/replay_webhook\"").nth(1).unwrap();
        let form = form.split("</form>").next().unwrap();
        assert!(form.contains(&format!("value=\"2026-11-{day}T12:00:00+00:00\"")), "{form}");
    }
    let first = open(&scenery.app, "/", "").await;
    let cookie = first.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let (cookie, token) = (cookie.split(';').next().unwrap(), form_token(&first.body));
    let fields = [("form_token", token.as_str()), ("since", "2026-11-15T00:00")];
    let path = format!("/webhooks/{id}/replay");
    let replayed = post(&scenery.app, &path, cookie, &fields, &[]).await;
    let is_counted = replayed.head.contains("set-cookie: done=replay_webhook.3;");
    assert!(replayed.status == 303 && is_counted, "{replayed:?}");
    let next = open(&scenery.app, "/", "done=replay_webhook.3").await.body;
    assert!(next.contains("Done: 3 deliveries are sent again."), "{next}");
}

#[tokio::test]
async fn a_limit_is_offered_to_a_caller_who_may_raise_it() {
    let scenery = Scenery::with(&KEYS).await;
    scenery.fail_at_budget(scenery.waiting, 5_000_000, 9_000_000).await;
    let raise = format!("href=\"/tasks/{}#enough\"", scenery.waiting);
    for (scope, may_raise) in [("read", false), ("operate", true)] {
        let (_, secret) = key(&scenery.app, scope, scope).await;
        let cookie = sign_in(&scenery.app, &secret).await;
        let page = open(&scenery.app, "/", &cookie).await.body;
        assert!(page.contains("this call may cost up to 9.00"), "{page}");
        assert_eq!(page.contains(&raise), may_raise, "{scope}: {page}");
    }
}

impl Scenery {
    /// Makes a provider refuse calls, holds a lane, and lets two tasks wait for the budget of their campaign.
    async fn obstruct(&self) {
        let pool = &self.app.pool;
        let busy = "insert into dalsegno.busy_models (provider, model, since, refused_at, until, refusals, why)
             values ('anthropic', 'claude-sonnet', $1::timestamptz - interval '13 minutes', $1, $1::timestamptz + interval '40 seconds', 5, '503 Service Unavailable')";
        sqlx::query(busy).bind(noon()).execute(pool).await.unwrap();
        let lane = format!("{}/copywriter/second", self.world.campaign.id);
        self.add_apart("Part 12: The end.").await;
        let path = format!("/v1/lanes/{}/hold", lane.replace('/', "%2F"));
        self.change(&path, &json!({ "reason": "legal reads it first" })).await;
        let limit = format!("/v1/campaigns/{}/budget", self.world.campaign.id);
        self.send("PATCH", &limit, &json!({ "tokens": 900_000 })).await;
        let waits = "insert into dalsegno.budget_waits (task_id, job_id, since, needed_micros, needed_tokens, owner, key)
             select id, job_id, '2026-11-20 11:55+00', 0, 900001, 'campaign', campaign_id::text from dalsegno.tasks
              where campaign_id = $1 and ended_at is null limit 2";
        sqlx::query(waits).bind(self.world.campaign.id).execute(pool).await.unwrap();
    }
}

#[tokio::test]
async fn providers_that_refuse_held_lanes_and_waits_for_budgets_are_listed() {
    let scenery = Scenery::new().await;
    scenery.obstruct().await;
    let attention = scenery.attention().await;
    let of = |kind: &str| {
        attention.iter().find(|it| it["kind"] == kind).unwrap_or_else(|| panic!("{attention:?}"))
    };
    let busy = of("busy_model");
    assert_eq!(attention[0], *busy, "{attention:?}");
    assert_eq!(busy["name"], "claude-sonnet on anthropic");
    assert!(busy["because"].as_str().unwrap().contains("503 Service Unavailable"), "{busy}");
    assert!(busy["until"].is_string(), "{busy}");
    let lane = of("held_lane");
    assert!(lane["because"].as_str().unwrap().contains("legal reads it first"), "{lane}");
    let budget = of("spent_budget");
    assert_eq!(budget["count"], 2, "{budget}");
    assert!(budget["because"].as_str().unwrap().contains("up to 900001 tokens"), "{budget}");
    assert!(budget["command"].as_str().unwrap().contains("--tokens "), "{budget}");
    let page = scenery.page("/").await;
    let campaign = scenery.world.campaign.id;
    for part in [
        "/do/release_lane",
        "/work/jobs?waits_for=provider",
        "Held, with its lane, or by the pause of an agent",
        &format!("href=\"/campaigns/{campaign}#limit\">Raise the limit"),
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert_eq!(scenery.attention().await.len(), attention.len());
    let budgets = scenery.page("/cost/budgets").await;
    assert!(budgets.contains("no space for a next call"), "{budgets}");
    let waiting = budgets.split("href=\"").find(|part| part.starts_with("/work/jobs?waits_for="));
    let waiting = scenery.page(waiting.unwrap().split('"').next().unwrap()).await;
    assert!(waiting.contains("Space in a budget"), "{waiting}");
}

/// Such a task waits alone: other workers may reach the server.
#[tokio::test]
async fn tasks_that_cannot_reach_their_server_are_listed_after_some_minutes() {
    let scenery = Scenery::new().await;
    let pool = &scenery.app.pool;
    let wait = "with task as (update dalsegno.tasks set session_id = $2 where id = $1 returning id)
                insert into dalsegno.busy_tasks (task_id, since, until)
                select id, $3::timestamptz - interval '2 minutes', $3::timestamptz + interval '1 minute' from task";
    let wait = sqlx::query(wait).bind(scenery.waiting).bind(scenery.session_id).bind(noon());
    wait.execute(pool).await.unwrap();
    let run = "insert into dalsegno.runs (job_id, lease, started_at, ended_at, attempt, outcome, queue, kind, error)
               select job_id, 900000, $2, $2, 1, 'snooze', 'turns', 'run_turn', 'cannot connect to http://127.0.0.1:11434' from dalsegno.tasks where id = $1";
    sqlx::query(run).bind(scenery.waiting).bind(noon()).execute(pool).await.unwrap();
    let listed = async || {
        let attention = scenery.attention().await;
        attention.into_iter().find(|it| it["kind"] == "provider_wait")
    };
    assert_eq!(listed().await, None);
    let longer = "update dalsegno.busy_tasks set since = since - interval '12 minutes'";
    sqlx::query(longer).execute(pool).await.unwrap();
    let found = listed().await.unwrap();
    let because = found["because"].as_str().unwrap();
    assert_eq!(because, "1 task waits for it: cannot connect to http://127.0.0.1:11434");
    assert_eq!(found["command"], "dalsegno doctor");
    assert_eq!(found["then"], format!("dalsegno task explain {}", scenery.waiting));
    assert!(scenery.page("/").await.contains("/work/jobs?waits_for=provider"));
    // A refusal of its model is shared by all tasks: there is one row for both.
    let model = "insert into dalsegno.busy_models (provider, model, since, refused_at, until, refusals, why)
         select provider, model, $2::timestamptz - interval '13 minutes', $2, $2::timestamptz + interval '40 seconds', 5, '503 Service Unavailable'
           from dalsegno.sessions where id = $1";
    sqlx::query(model).bind(scenery.session_id).bind(noon()).execute(pool).await.unwrap();
    assert_eq!(listed().await, None);
    let attention = scenery.attention().await;
    let busy = attention.iter().find(|it| it["kind"] == "busy_model").unwrap();
    assert_eq!(busy["then"], found["then"]);
}

#[tokio::test]
async fn tasks_that_failed_with_the_same_error_are_one_row() {
    let scenery = Scenery::new().await;
    let failed = "update dalsegno.tasks set state = 'failed', started_at = created_at, ended_at = '2026-11-20 11:30+00',
                error = 'there is no login: run `dalsegno credential ls`', result = null
           where id = any ($1)";
    let ids = vec![scenery.waiting, scenery.retried];
    sqlx::query(failed).bind(&ids).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page("/").await;
    assert!(page.contains("2 tasks with the same error"), "{page}");
    // With the warning that no worker runs, two rows.
    let list =
        page.split("class=\"rows attention\"").nth(1).unwrap().split("</ul>").next().unwrap();
    assert_eq!(list.matches("<li").count(), 2, "{list}");
    assert!(
        page.contains("<h1>2 things need you.") && page.contains("2 open, worst first"),
        "{page}"
    );
    assert!(page.contains("<code>dalsegno credential ls</code>"), "{page}");
    // The notifications of the browser count the same things.
    let notices = scenery.get_json("/attention").await;
    let notices = notices["items"].as_array().unwrap();
    assert_eq!(notices.len(), 2, "{notices:?}");
    let failed = notices.iter().find(|it| it["target"] == "/tasks?state=failed").unwrap();
    assert_eq!(failed["title"], "failed: 2 tasks with the same error");
    let retry = page.split("href=\"").find(|part| part.starts_with("/tasks/selected?action=retry"));
    let retry = retry.unwrap().split('"').next().unwrap().replace("&amp;", "&");
    assert!(ids.iter().all(|id| retry.contains(&id.to_string())), "{retry}");
    assert!(scenery.page(&retry).await.contains("Retry"), "{retry}");
}

impl Scenery {
    /// Adds tasks that failed with this error: the newest at `newest_at`, each other a second earlier.
    async fn fail_many(&self, n_tasks: i32, newest_at: DateTime<Utc>, error: &str) {
        let fail = "insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt, state, error, started_at, ended_at)
             select gen_random_uuid(), $1, least(0, (select min(job_id) from dalsegno.tasks)) - n, 'copywriter', 'Part ' || n, 'failed', $4, at, at
               from generate_series(1, $2) as n, lateral (select $3::timestamptz - (n - 1) * interval '1 second') as ended (at)";
        let fail = sqlx::query(fail).bind(self.world.campaign.id).bind(n_tasks);
        fail.bind(newest_at).bind(error).execute(&self.app.pool).await.unwrap();
    }
}

#[tokio::test]
async fn many_equal_failures_do_not_hide_an_older_one() {
    let scenery = Scenery::new().await;
    scenery.fail_many(30, noon(), "the model answered nothing").await;
    scenery.fail_many(1, noon() - TimeDelta::days(2), "there is no login").await;
    let overview = scenery.get_json("/v1/overview").await;
    assert_eq!(overview["failures"], json!({ "read": 31, "is_cut": false, "groups": 2 }));
    let items: Vec<Attention> = serde_json::from_value(overview["attention"].clone()).unwrap();
    let groups = group_failures(&items);
    assert_eq!((groups[0].len(), count_group(&groups[0])), (20, 30), "{items:?}");
    assert_eq!(groups[0][0].since, Some(noon()));
    assert_eq!((groups[1].len(), groups[1][0].unlisted), (1, None), "{items:?}");
    assert_eq!(groups[1][0].because, "there is no login");
    let page = scenery.page("/").await;
    for part in ["30 tasks with the same error", " and 27 more", "Retry the newest 20", "no login"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("different failures are listed"), "{page}");
    let notices = scenery.get_json("/attention").await.to_string();
    assert!(notices.contains("failed: 30 tasks with the same error"), "{notices}");
    // Of 22 different errors, the two oldest are left out.
    for n in 0..20 {
        let at = noon() - TimeDelta::hours(n + 1);
        scenery.fail_many(2, at, &format!("error {n}")).await;
    }
    let page = scenery.page("/").await;
    assert!(page.contains("20 of 22 different failures are listed"), "{page}");
    assert!(page.contains("error 18") && !page.contains("error 19"), "{page}");
}

#[tokio::test]
async fn failed_tasks_are_read_up_to_a_number_and_each_group_is_listed() {
    let scenery = Scenery::new().await;
    scenery.fail_many(6, noon(), "the model answered nothing").await;
    for (hours, error) in [(1, "there is no login"), (2, "refused"), (3, "too late")] {
        scenery.fail_many(1, noon() - TimeDelta::hours(hours), error).await;
    }
    let query = tasks::FailureQuery {
        since: noon() - TimeDelta::days(7),
        max_read: 8,
        max_groups: 2,
        max_of_group: 4,
        max_listed: 5,
    };
    let list = async |query: tasks::FailureQuery| {
        let (failed, totals) = tasks::list_failures(&scenery.app.pool, &query).await.unwrap();
        let of = |it: tasks::FailedTask| (it.line.error.unwrap(), it.unlisted);
        (failed.into_iter().map(of).collect::<Vec<_>>(), totals)
    };
    let busy = |unlisted| ("the model answered nothing".to_owned(), unlisted);
    let login = ("there is no login".to_owned(), None);
    let (listed, totals) = list(query).await;
    assert_eq!(listed, [busy(None), busy(None), busy(None), busy(Some(2)), login.clone()]);
    assert_eq!((totals.read, totals.is_cut, totals.groups), (8, true, 3));
    let (listed, _) = list(tasks::FailureQuery { max_listed: 3, ..query }).await;
    assert_eq!(listed, [busy(None), busy(Some(4)), login]);
    let (_, totals) = list(tasks::FailureQuery { max_read: 10, ..query }).await;
    assert_eq!((totals.read, totals.is_cut, totals.groups), (9, false, 4));
}

#[tokio::test]
async fn the_overview_reads_the_newest_thousand_failed_tasks_and_says_so() {
    let scenery = Scenery::new().await;
    scenery.fail_many(998, noon(), "the model answered nothing").await;
    scenery.fail_many(3, noon() - TimeDelta::days(2), "there is no login").await;
    let overview = scenery.get_json("/v1/overview").await;
    assert_eq!(overview["failures"], json!({ "read": 1_000, "is_cut": true, "groups": 2 }));
    let page = scenery.page("/").await;
    for part in [
        "998 or more tasks",
        "2 or more tasks",
        "Only the newest 1000 failed tasks of the last 7 days",
        "Retry the newest 2…",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let notices = scenery.get_json("/attention").await.to_string();
    assert!(notices.contains("failed: 2 or more tasks with the same error"), "{notices}");
}

#[tokio::test]
async fn failures_at_one_budget_are_one_group_with_different_amounts() {
    let scenery = Scenery::new().await;
    for (part, needed) in [("Part 12.", 8_000_000), ("Part 13.", 9_000_000)] {
        let task = scenery.add_apart(part).await;
        scenery.fail_at_budget(task.id, 5_000_000, needed).await;
    }
    let error = "there is no login";
    scenery.fail_many(1, noon() - TimeDelta::days(1), error).await;
    let query = tasks::FailureQuery {
        since: noon() - TimeDelta::days(7),
        max_read: 10,
        max_groups: 20,
        max_of_group: 1,
        max_listed: 20,
    };
    let (failed, totals) = tasks::list_failures(&scenery.app.pool, &query).await.unwrap();
    assert_eq!(totals.groups, 2, "{failed:?}");
    assert_eq!(failed.iter().map(|it| it.unlisted).collect::<Vec<_>>(), [Some(1), None]);
    assert_eq!(failed.iter().map(|it| it.group_place).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(failed[1].line.error.as_deref(), Some(error));
}

impl Scenery {
    /// Adds runs of a queue that ended a number of seconds ago, which differs from that of other calls.
    async fn add_runs(&self, queue: &str, n_runs: i32, secs_ago: i32) {
        let add = "insert into dalsegno.runs (job_id, lease, attempt, outcome, queue, kind, ended_at)
             select -n, -$3, 1, 'done', $1, 'k', now() - $3 * interval '1 second' from generate_series(1, $2) as n";
        let add = sqlx::query(add).bind(queue).bind(n_runs).bind(secs_ago);
        add.execute(&self.app.pool).await.unwrap();
    }
}

#[tokio::test]
async fn runs_of_other_queues_do_not_hide_those_of_turns_and_more_than_were_read_are_named() {
    let scenery = Scenery::new().await;
    scenery.add_runs("turns", 5, 600).await;
    scenery.add_runs("upkeep", 10_000, 60).await;
    let overview = scenery.get_json("/v1/overview").await;
    let runs = overview["runs"].as_array().unwrap();
    assert!(runs.iter().any(|it| it["minutes_ago"] == 10 && it["done"] == 5), "{runs:?}");
    assert_eq!(overview["runs_are_cut"], false);
    let page = scenery.page("/").await;
    assert!(
        !page.contains("or more <small>") && !page.contains("as far as they were read"),
        "{page}"
    );
    scenery.add_runs("turns", 10_000, 30).await;
    let overview = scenery.get_json("/v1/overview").await;
    assert_eq!(overview["runs_are_cut"], true);
    let page = scenery.page("/").await;
    for part in ["or more <small>0 of these failed", "Runs ended, last hour, as far as they were"] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[tokio::test]
async fn the_longest_wait_names_the_tasks_that_were_read_if_there_are_more() {
    let scenery = Scenery::new().await;
    assert_eq!(scenery.get_json("/v1/overview").await["waits_are_cut"], false);
    // None of the newest has started.
    let add = "insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt)
         select ('ffffffff-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, -n, 'copywriter', 'Part ' || n
           from generate_series(1, 5000) as n";
    let add = sqlx::query(add).bind(scenery.world.campaign.id);
    add.execute(&scenery.app.pool).await.unwrap();
    let overview = scenery.get_json("/v1/overview").await;
    assert_eq!((&overview["waits_are_cut"], &overview["waits"]), (&json!(true), &json!([])));
    let page = scenery.page("/").await;
    assert!(page.contains(", of the newest 5000 tasks"), "{page}");
}

#[tokio::test]
async fn the_time_range_is_in_the_url() {
    let scenery = Scenery::new().await;
    for (range, words) in
        [("", "last hour"), ("?range=24h", "last 24 hours"), ("?range=7d", "last 7 days")]
    {
        let page = scenery.app.get(&format!("/{range}")).await;
        assert!(page.status == 200 && page.body.contains(words), "{range}: {page:?}");
    }
    let tasks = scenery.app.get("/tasks?range=7d").await;
    assert!(tasks.body.contains("Part 10: The quay."), "{tasks:?}");
    send(scenery.app.address, "GET", "/v1/overview?hours=169", &[], "")
        .await
        .problem(400, "bad_query");
}

#[tokio::test]
async fn tasks_that_a_paused_agent_holds_are_listed_with_the_pause_alone() {
    let scenery = Scenery::new().await;
    let pool = &scenery.app.pool;
    let campaign = scenery.world.campaign.id;
    let path = format!("/v1/campaigns/{campaign}/agents/copywriter/pause");
    scenery.change(&path, &json!({ "reason": "legal reads it first" })).await;
    let mut conn = pool.acquire().await.unwrap();
    let pauses = agent_pauses::list_all(&mut *conn).await.unwrap();
    let task = scenery.add_apart("Part 12: The end.").await;
    // As a worker does that finds the pause.
    admin::hold_job(pool, task.job_id, &pauses[0].hold_reason()).await.unwrap();
    let attention = scenery.attention().await;
    let pause = attention.iter().find(|it| it["kind"] == "paused_agent").unwrap();
    assert_eq!(pause["count"], 1, "{pause}");
    assert!(pause["because"].as_str().unwrap().ends_with("; 1 task waits"), "{pause}");
    let is_held = |it: &&Value| it["kind"] == "held_jobs";
    assert!(!attention.iter().any(|it| is_held(&it)), "{attention:?}");
}

#[tokio::test]
async fn a_reason_without_punctuation_does_not_run_into_the_next_sentence() {
    let scenery = Scenery::new().await;
    let paused = "insert into dalsegno.paused_credentials (provider, credential, until, why) values
           ('claude', 'one', $1::timestamptz + interval '1 hour', 'calls are waiting'),
           ('claude', 'two', $1::timestamptz + interval '1 hour', 'its limit is used up.')";
    sqlx::query(paused).bind(noon()).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page("/").await;
    assert!(page.contains("calls are waiting.</bdi> It continues "), "{page}");
    assert!(page.contains("its limit is used up.</bdi> It continues "), "{page}");
}
