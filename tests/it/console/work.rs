//! The pages of the queue: what waits and why, workers, jobs, lanes, dead letters, bulk actions.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{KEYS, key, open, sign_in},
    upkeep_scenery::UpkeepScenery,
};
use crate::{
    app::eventually,
    http::{client::send, key_setup::ADMIN_KEY},
};

#[tokio::test]
async fn waiting_jobs_are_counted_by_their_reason() {
    let scenery = Scenery::new().await;
    let waits = scenery.app.get("/v1/waits").await;
    let waits: Value = serde_json::from_str(&waits.body).unwrap();
    let of = |reason: &str| {
        let all = waits["items"].as_array().unwrap().iter();
        all.filter(|wait| wait["reason"] == reason)
            .map(|wait| wait["jobs"].as_i64().unwrap())
            .sum::<i64>()
    };
    assert!(of("slot") + of("lane") + of("later") > 0, "{waits}");
    assert_eq!(of("person"), 0, "{waits}");
    let listed = scenery.app.get("/v1/jobs").await;
    let listed: Value = serde_json::from_str(&listed.body).unwrap();
    let own = listed["items"].as_array().unwrap().iter();
    let job = own.clone().find(|job| job["kind"] == "run_turn" && job["state"] == "ready");
    let job = job.unwrap_or_else(|| panic!("{listed}"))["id"].as_i64().unwrap();
    let hold = format!("/v1/jobs/{job}/hold");
    let why = r#"{ "reason": "legal reads it first" }"#;
    send(scenery.app.address, "POST", &hold, &[], why).await.expect(200);
    let page = scenery.page("/work?queue=turns").await;
    assert!(page.contains("What waits, and why"), "{page}");
    assert!(page.contains("Its release by a person"), "{page}");
    let page = scenery.page(&format!("/work/jobs/{job}")).await;
    assert!(page.contains("legal reads it first") && page.contains("/do/cancel_job"), "{page}");
}

#[tokio::test]
async fn the_activity_of_workers_has_their_slots_and_runs() {
    let furnished = UpkeepScenery::new().await;
    let activity = furnished.scenery.app.get("/v1/workers/activity?minutes=30").await;
    let activity: Value = serde_json::from_str(&activity.body).unwrap();
    assert_eq!(activity["workers"].as_array().unwrap().len(), 2, "{activity}");
    assert_eq!(activity["runs"].as_array().unwrap().len(), 6, "{activity}");
    let refused = furnished.scenery.app.get("/v1/workers/activity?minutes=61").await;
    assert!(refused.body.contains("must be from 1 to 60"), "{}", refused.body);
    let page = furnished.scenery.page("/work").await;
    for part in ["worker-a", "slot 3", "2 of 2 live", "0 of 5 slots", "bar-soft"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    // One worker, at the time of its run that failed.
    let run = "select r.job_id, r.ended_at + interval '1 minute', coalesce((select prompt from dalsegno.tasks as t where t.job_id = r.job_id), '')
                 from dalsegno.runs as r where r.outcome = 'failed' and r.worker_id = '00000000-0000-7000-8000-00000000000a'";
    let run: (i64, DateTime<Utc>, String) =
        sqlx::query_as(run).fetch_one(&furnished.scenery.app.pool).await.unwrap();
    let (job, until, prompt) = run;
    let worker = "00000000-0000-7000-8000-00000000000a";
    let until = until.format("%Y-%m-%dT%H%%3A%M%%3A%SZ");
    let page = furnished.scenery.page(&format!("/work?worker={worker}&until={until}")).await;
    for part in ["Runs of one worker", "(pid 4711)", &format!("/work/jobs/{job}"), "failed"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let words = prompt.split_whitespace().next().unwrap_or_default();
    assert!(page.contains(words) && page.contains("Earlier"), "{words} in {page}");
    let unknown = furnished.scenery.page(&format!("/work?worker={}", Uuid::nil())).await;
    assert!(unknown.contains("did not live at this time"), "{unknown}");
    let of_job = furnished.scenery.page(&format!("/work/jobs/{job}")).await;
    assert!(of_job.contains(&format!("/work?worker={worker}&amp;until=")), "{of_job}");
}

#[tokio::test]
async fn pages_of_paused_things_name_the_reason_the_begin_and_the_author() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let (_, secret) = key(app, "ann", "operate").await;
    let auth = format!("Bearer {secret}");
    let campaign = scenery.world.campaign.id;
    for (path, body) in [
        (format!("/v1/campaigns/{campaign}/pause"), r#"{ "reason": "client call" }"#),
        (format!("/v1/campaigns/{campaign}/agents/copywriter/pause"), r#"{ "reason": "dear" }"#),
        ("/v1/queues/turns/pause".to_owned(), r#"{ "reason": "upgrade" }"#),
        (format!("/v1/flows/{}/pause", scenery.flow), ""),
    ] {
        let headers = [("Authorization", auth.as_str()), ("Content-Type", "application/json")];
        let reply = send(app.address, "POST", &path, &headers, body).await;
        assert!(reply.status < 300, "{path}: {reply:?}");
    }
    let admin = sign_in(app, ADMIN_KEY).await;
    for (path, reason, author) in [
        (
            format!("/campaigns/{campaign}"),
            "<bdi>client call</bdi>. Paused since <time",
            ">the API key ann</bdi>",
        ),
        (format!("/campaigns/{campaign}?part=agents"), "dear", ">the API key ann</bdi>"),
        ("/work".to_owned(), "<bdi>upgrade</bdi>. Paused since <time", ">the API key ann</bdi>"),
        (
            format!("/flows/{}", scenery.flow),
            "The flow is paused since <time",
            ">the API key ann</bdi>",
        ),
        (
            format!("/tasks/{}", scenery.waiting),
            "is paused: client call. It was paused at",
            " by the API key ann.",
        ),
    ] {
        let page =
            open(app, &path, &admin).await.body.replace("</p><p class=\"next\" dir=\"auto\">", " ");
        assert!(page.contains(reason) && page.contains(author), "{path}: {page}");
    }
    // A pause in SQL of what is paused already gives it another reason, and has no author.
    let replace = format!(
        "select dalsegno.pause('group', '{campaign}', 'by hand'), dalsegno.pause('queue', 'turns', 'by hand')"
    );
    sqlx::query(sqlx::AssertSqlSafe(replace)).execute(&app.pool).await.unwrap();
    for path in ["/work".to_owned(), format!("/campaigns/{campaign}")] {
        let page = open(app, &path, &admin).await.body;
        let words =
            page.split("id=\"explain\"").nth(1).unwrap().split("</section>").next().unwrap();
        assert!(words.contains("by hand") && !words.contains("API key ann"), "{path}: {words}");
    }
    // The log has another author than the pauses that a person made in SQL later: after a resume by the API, and after one in SQL.
    let flow = scenery.flow;
    scenery.send("POST", &format!("/v1/campaigns/{campaign}/resume"), &json!({})).await;
    for statement in [
        format!("select dalsegno.pause('group', '{campaign}', 'by hand')"),
        "select dalsegno.resume('queue', 'turns')".to_owned(),
        "select dalsegno.pause('queue', 'turns', 'by hand')".to_owned(),
        format!("select dalsegno.resume_flow('{flow}')"),
        format!("select dalsegno.pause_flow('{flow}', now())"),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&app.pool).await.unwrap();
    }
    for path in ["/work".to_owned(), format!("/flows/{flow}")] {
        let page = open(app, &path, &admin).await.body;
        let words =
            page.split("id=\"explain\"").nth(1).unwrap().split("</section>").next().unwrap();
        assert!(words.contains("aused since <time") && !words.contains("API key ann"), "{words}");
    }
    let page = open(app, &format!("/campaigns/{campaign}"), &admin).await.body;
    let explanation =
        page.split("id=\"explain\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(
        explanation.contains("by hand") && !explanation.contains("API key ann"),
        "{explanation}"
    );
    let shown = scenery.get_json(&format!("/v1/campaigns/{campaign}")).await;
    assert!(shown["paused_at"].is_string() && shown["paused_by"].is_null(), "{shown}");
}

#[tokio::test]
async fn a_rate_limit_shows_what_is_free_now_with_its_unit() {
    let scenery = Scenery::new().await;
    let limit = "insert into dalsegno.rate_limits (key, subject, measure, amount, available, refilled_at)
                 values ('sim * * * requests', 'the provider `sim`', 'requests', 600, 30, now()),
                        ('sim * * * concurrent_calls', 'the provider `sim`', 'concurrent_calls', 4, 4, now())";
    sqlx::query(limit).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page("/work").await;
    for words in ["30 of 30 requests", "10 more per second", "4 of 4 concurrent calls"] {
        assert!(page.contains(words), "{words} in {page}");
    }
}

#[tokio::test]
async fn jobs_of_a_paused_campaign_are_not_ready() {
    let scenery = Scenery::new().await;
    let task = scenery.add_apart("Part 11: The storm.").await;
    let behind = scenery.add_apart("Part 12: The calm.").await;
    let pause = format!("/v1/campaigns/{}/pause", scenery.world.campaign.id);
    scenery.apply("POST", &pause, &json!({ "reason": "client call" })).await;
    let listed = scenery.get_json("/v1/jobs?waits_for=pause").await;
    let ids: Vec<_> = listed["items"].as_array().unwrap().iter().map(|job| &job["id"]).collect();
    assert!(ids.contains(&&json!(task.job_id)), "{listed}");
    assert!(!ids.contains(&&json!(behind.job_id)), "it is behind the other: {listed}");
    let list = scenery.page("/work/jobs?waits_for=pause").await;
    assert!(list.contains("its campaign or its queue is paused"), "{list}");
    assert!(list.contains("Part 11: The storm.") && !list.contains("Part 12"), "{list}");
    let lane = format!("/work/lanes?name={}%2Fcopywriter%2Fsecond", scenery.world.campaign.id);
    let lane = scenery.page(&lane).await;
    assert!(lane.contains(">paused<"), "{lane}");
    let work = scenery.page("/work").await;
    assert!(work.contains("waits_for=pause") && work.contains(" paused</a>"), "{work}");
    let overview = scenery.page("/").await;
    assert!(overview.contains(" paused</small>"), "{overview}");
    let path = "/work/jobs?waits_for=rain";
    let refused = send(scenery.app.address, "GET", path, &[super::sign_in::HTML], "").await;
    assert!(refused.status == 422 && refused.body.contains("rain"), "{refused:?}");
}

#[tokio::test]
async fn jobs_of_a_held_lane_are_not_behind_another_job() {
    let scenery = Scenery::new().await;
    let lane = format!("{}/copywriter/second", scenery.world.campaign.id);
    let first = scenery.add_apart("Part 11: The storm.").await;
    let hold = format!("/v1/lanes/{}/hold", lane.replace('/', "%2F"));
    scenery.apply("POST", &hold, &json!({ "reason": "legal reads it first" })).await;
    scenery.apply("POST", &format!("/v1/jobs/{}/cancel", first.job_id), &json!({})).await;
    let second = scenery.add_apart("Part 12: The calm.").await;
    let jobs = scenery.page("/work/jobs?waits_for=lane_hold").await;
    assert!(jobs.contains("its lane is held") && jobs.contains("Part 12"), "{jobs}");
    assert!(!jobs.contains("behind another job"), "{jobs}");
    let page = scenery.page(&format!("/work/lanes?name={}", lane.replace('/', "%2F"))).await;
    assert!(page.contains("lane held") && !page.contains(">behind<"), "{page}");
    assert!(page.contains("class=\"num\">1</td>"), "its place: {page}");
    let task = scenery.page(&format!("/tasks/{}", second.id)).await;
    assert!(task.contains("/do/release_lane") && task.contains("/work/lanes?name="), "{task}");
}

#[tokio::test]
async fn a_running_job_names_its_lease_and_its_worker() {
    let furnished = UpkeepScenery::new().await;
    let scenery = &furnished.scenery;
    let task = scenery.add_apart("Part 11: The storm.").await;
    let run =
        "update dalsegno.jobs set state = 'running', lease = 77, attempt = 1, claimed_at = now(),
                      worker_id = '00000000-0000-7000-8000-00000000000a' where id = $1";
    sqlx::query(run).bind(task.job_id).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page(&format!("/work/jobs/{}", task.job_id)).await;
    assert!(page.contains("worker-a") && page.contains("(pid 4711)"), "{page}");
    assert!(page.contains("77, until "), "{page}");
    assert!(!page.contains("{&quot;task&quot;"), "{page}");
    assert!(page.contains("The payload, as the queue has it"), "{page}");
}

#[tokio::test]
async fn runs_that_were_put_off_use_up_no_attempt() {
    let furnished = UpkeepScenery::new().await;
    let scenery = &furnished.scenery;
    let job = scenery.world.add("Part 11: The storm.").await.job_id;
    let put_off = "insert into dalsegno.runs (job_id, lease, started_at, ended_at, worker_id, attempt, outcome, queue, kind, error)
         select $1, 100 + n, '2026-11-20 11:00+00', '2026-11-20 11:00+00'::timestamptz + n * interval '1 second', null, 1, 'snooze', 'turns', 'run_turn',
                'it is called again at 2026-11-20 12:20:35 UTC' from generate_series(1, 3) as n";
    sqlx::query(put_off).bind(job).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page(&format!("/work/jobs/{job}")).await;
    assert!(page.contains("3 runs, 3 put off") && !page.contains(">snooze<"), "{page}");
    assert_eq!(page.matches("is called again").count(), 1, "{page}");
    assert!(!page.contains("at 2026-11-20 12:20:35 UTC"), "{page}");
}

#[tokio::test]
async fn empty_pages_name_a_command() {
    let app = crate::app::TestApp::start().await;
    let page = async |path: &str| {
        send(app.address, "GET", path, &[("Accept", "text/html")], "").await.body
    };
    for (path, command) in [
        ("/work", "dalsegno worker turns"),
        ("/work/jobs", "dalsegno task add"),
        ("/work/jobs?state=dead", "dalsegno job ls --state dead"),
        ("/work/jobs?campaign_id=019aa2f4-0000-7000-8000-00000000dead", "Show all jobs"),
        ("/work/lanes", "dalsegno task add"),
        ("/work/lanes?held=true", "dalsegno lane hold"),
        ("/work/bulk", "dalsegno task retry"),
        ("/schedules", "dalsegno worker upkeep"),
        ("/cleanup", "dalsegno cleanup"),
        ("/erasures", "dalsegno campaign erase"),
        ("/webhooks", "dalsegno webhook add"),
        ("/keys", "dalsegno key create"),
        ("/audit", "dalsegno audit ls"),
    ] {
        let page = page(path).await;
        assert!(page.contains("class=\"empty\"") && page.contains(command), "{path}: {page}");
    }
}

#[tokio::test]
async fn a_bulk_action_runs_on_the_tasks_of_its_preview() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/work/bulk")).await;
    browser.write("input[name=text]", "The quay").await;
    browser.run("document.querySelector('select[name=action]').value = 'cancel'").await;
    browser.click(".filters button").await;
    browser.wait_until("document.querySelector('[name=expected_count]')").await;
    assert!(
        browser.text("main").await.contains("Cancel 1 task?"),
        "{}",
        browser.text("main").await
    );
    browser.save_picture("bulk-preview").await;
    browser.write("#reason", "the brief has changed").await;
    browser.click("form.after .primary").await;
    eventually("the action is stored", async || {
        let actions = scenery.app.get("/v1/bulk-actions").await.body;
        actions.contains("the brief has changed").then_some(())
    })
    .await;
    browser.wait_until("document.querySelector('main table')").await;
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn a_lane_is_held_and_released_on_its_page() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/work/lanes")).await;
    browser.click(".lanes a").await;
    browser.wait_until("location.search.startsWith('?name=')").await;
    browser.click("[popovertarget=confirm-hold]").await;
    browser.write("#reason", "legal reads it first").await;
    browser.click("#confirm-hold .primary").await;
    browser.wait_until("document.querySelector('.explain.held')").await;
    assert!(browser.text("#explain").await.contains("legal reads it first"));
    browser.click("form[action='/do/release_lane'] button").await;
    browser.wait_until("!document.querySelector('.explain.held')").await;
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn jobs_and_bulk_actions_are_narrowed_by_a_campaign() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let (own, hostile) = (scenery.world.campaign.id, scenery.hostile_campaign);
    let other = format!("/v1/campaigns/{hostile}/tasks");
    let task = serde_json::json!({ "agent": "copywriter", "prompt": "Part 1: Another quay." });
    scenery.send("POST", &other, &task).await;
    let page = scenery.page(&format!("/work/jobs?campaign_id={hostile}")).await;
    assert!(page.contains("Another quay") && !page.contains("Part 10: The quay."), "{page}");
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/work/bulk")).await;
    browser.write("input[name=text]", "quay").await;
    let choose = format!(
        "document.querySelector('select[name=action]').value = 'cancel'; document.querySelector('select[name=except_campaign_id]').value = '{own}'"
    );
    browser.run(&choose).await;
    browser.click(".filters button").await;
    browser.wait_until("document.querySelector('[name=expected_count]')").await;
    let main = browser.text("main").await;
    assert!(main.contains("Cancel 1 task?") && main.contains("Another quay"), "{main}");
    browser.click("form.after .primary").await;
    browser
        .wait_until("document.querySelector('main table')?.textContent.includes('except in')")
        .await;
    browser.save_in_all_looks("bulk-except").await;
    assert!(browser.complaints().await.is_empty());
}
