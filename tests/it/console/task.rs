//! The page of a task: its priority and the answers of its attempts.

use dalsegno::domain::task_files::{self, NewFiles};
use serde_json::json;

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{KEYS, open, sign_in},
};
use crate::{app::noon, http::key_setup::ADMIN_KEY};

#[tokio::test]
async fn the_page_of_a_task_lists_its_files_and_a_link_downloads_one() {
    let scenery = Scenery::new().await;
    let path = format!("/tasks/{}", scenery.done);
    assert!(!scenery.page(&path).await.contains("id=\"files\""));
    let mut new = NewFiles::default();
    new.add("charts/<b>.html", b"<script>alert(1)</script>");
    new.add_problem(b"long", "it is too long".to_owned());
    task_files::store_contents(&scenery.app.pool, &new, noon()).await.unwrap();
    task_files::record(&scenery.app.pool, (scenery.done, 1), &new, noon()).await.unwrap();
    let attached =
        "insert into dalsegno.task_attachments (attached_at, position, task_id, sha256, name)
                    select now(), 1, $1, sha256, 'charts' from dalsegno.file_contents";
    sqlx::query(attached).bind(scenery.done).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page(&path).await;
    let link = format!("{path}/files/charts%2F%3Cb%3E.html");
    for link in [&format!("{link}?direction=out"), &format!("{path}/files/charts?direction=in")] {
        assert!(page.contains(&format!("href=\"{link}\"")), "{link} in {page}");
        assert_eq!(scenery.app.get(link).await.status, 200);
    }
    assert!(page.contains("charts/&lt;b&gt;.html") && page.contains("Not stored: it is too long"));
    let file = scenery.app.get(&link).await;
    assert_eq!((file.status, file.body.as_str()), (200, "<script>alert(1)</script>"));
    for line in [
        "content-disposition: attachment; filename=\"_b_.html\"",
        "content-type: text/plain; charset=utf-8",
        "x-content-type-options: nosniff",
    ] {
        assert!(file.head.contains(line), "{line} in {file:?}");
    }
    assert_eq!(scenery.app.get(&format!("{path}/files/none")).await.status, 404);
}

#[tokio::test]
async fn the_priority_of_a_waiting_task_is_changed_on_its_page() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.waiting))).await;
    browser.click("[popovertarget=change-priority]").await;
    browser.wait_until("document.querySelector('#change-priority:popover-open')").await;
    browser.save_picture("task-priority").await;
    browser.run("document.getElementById('priority').value = ''").await;
    browser.write("#priority", "7").await;
    browser.click("#change-priority .primary").await;
    browser
        .wait_until(
            "[...document.querySelectorAll('.facts dd')].some(it => it.textContent === '7')",
        )
        .await;
    let task = scenery.get_json(&format!("/v1/tasks/{}", scenery.waiting)).await;
    assert_eq!(task["priority"], 7);
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.done))).await;
    assert!(!browser.has("#change-priority").await, "the task has ended");
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn a_task_with_an_earliest_start_is_run_now_on_its_page() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let path = format!("/tasks/{}", scenery.waiting);
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&path)).await;
    let shown = browser.text("main").await;
    assert_eq!(shown.matches("ot before").count(), 2, "in the head and the facts: {shown}");
    assert!(shown.contains("It does not start before"), "{shown}");
    browser.save_picture("task-later").await;
    browser.wait_until("window.htmx !== undefined").await;
    browser.click(".remedies button").await;
    browser.wait_until("!document.querySelector('.remedies')").await;
    let shown = browser.text("main").await;
    assert!(!shown.contains("ot before"), "{shown}");
    let task = scenery.get_json(&format!("/v1/tasks/{}", scenery.waiting)).await;
    assert!(task["run_at"].is_null(), "{task}");
    let job = scenery.get_json(&format!("/v1/jobs/{}", task["job_id"])).await;
    assert_ne!(job["state"], "scheduled", "{job}");
    let audit = scenery.get_json("/v1/audit?action=job.retry").await;
    assert_eq!(audit["items"][0]["data"]["task_id"], task["id"], "{audit}");
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn a_task_is_done_elsewhere_with_its_files_and_its_time() {
    let scenery = Scenery::new().await;
    let campaign = format!("/v1/campaigns/{}/tasks", scenery.world.campaign.id);
    let new = json!({
        "agent": "copywriter", "prompt": "Read it.", "within_secs": 86_400,
        "attachments": [
            { "name": "a b.md", "content": "IyBOb3Rlcw==" },
            { "name": "plan.txt", "content": "UGxhbg==" },
        ],
    });
    let task = scenery.send("POST", &campaign, &new).await;
    let id = task["id"].as_str().unwrap();
    let page = scenery.page(&format!("/tasks/{id}")).await.replace("&quot;", "\"");
    let command = format!("--attach-from '{id}/a b.md' --attach-from {id}/plan.txt --within 24h");
    assert!(page.contains(&command), "{command} in {page}");
    let body = page.split("-d '").nth(1).unwrap().split('\'').next().unwrap();
    assert!(page.contains("takes no files and no time for the answer"), "{page}");
    let again: serde_json::Value = serde_json::from_str(body).unwrap();
    let copy = scenery.send("POST", &campaign, &again).await;
    let copy = scenery.get_json(&format!("/v1/tasks/{}", copy["id"].as_str().unwrap())).await;
    assert_eq!(copy["within_secs"], 86_400);
    let names: Vec<_> = copy["files"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["a b.md", "plan.txt"]);
    let plain = scenery.page(&format!("/tasks/{}", scenery.waiting)).await;
    assert!(!plain.contains("The SQL function takes no"), "{plain}");
}

#[tokio::test]
async fn a_turn_that_was_put_off_is_not_shown_as_failed() {
    let scenery = Scenery::new().await;
    let path = format!("/tasks/{}", scenery.retried);
    assert!(scenery.page(&path).await.contains(">interrupted<"));
    let put_off = "update dalsegno.turns set state = 'failed', error = 'HTTP status 529: overloaded', flags = '{put_off}'
                    where task_id = $1 and state = 'interrupted' returning session_id, number";
    let (session, number): (uuid::Uuid, i32) =
        sqlx::query_as(put_off).bind(scenery.retried).fetch_one(&scenery.app.pool).await.unwrap();
    let page = scenery.page(&path).await;
    assert!(page.contains(">put off<") && page.contains("1 attempt, 1 put off"), "{page}");
    assert!(!page.contains(">failed<") && page.contains("529: overloaded"), "{page}");
    for path in [
        format!("/sessions/{session}"),
        format!("/sessions/{session}/turns"),
        format!("/sessions/{session}/turns/{number}"),
    ] {
        let page = scenery.page(&path).await;
        assert!(page.contains(">put off<") && !page.contains(">put_off<"), "{path}: {page}");
    }
}

#[tokio::test]
async fn calls_without_a_price_are_told_apart_from_free_ones() {
    let scenery = Scenery::new().await;
    let turn = format!("/sessions/{}/turns/1", scenery.session_id);
    let task = format!("/tasks/{}", scenery.done);
    let paths = [&turn, &task, "/cost/calls?from=2026-11-20&to=2026-11-20"];
    for path in paths {
        assert!(!scenery.page(path).await.contains(">no price<"), "{path}");
    }
    // The ledger is append-only.
    let free = "alter table dalsegno.usage disable trigger user; update dalsegno.usage set cost_micros = 0;
                update dalsegno.turns set cost_micros = 0; update dalsegno.tasks set spent_micros = 0";
    sqlx::raw_sql(free).execute(&scenery.app.pool).await.unwrap();
    let session = format!("/sessions/{}", scenery.session_id);
    for path in [&session, &format!("{session}/turns"), "/cost/calls?from=2026-11-20&to=2026-11-20"]
    {
        assert!(scenery.page(path).await.contains(">no price<"), "{path}");
    }
    for path in [&turn, &task] {
        let page = scenery.page(path).await;
        assert!(page.contains(">no price<") && page.contains("<bdi>sim/sim-1</bdi>"), "{page}");
        assert!(page.contains("/installation?setting=prices.models"), "{page}");
        assert!(!page.contains("for €0.00"), "{page}");
    }
    let priced = "update dalsegno.usage set price = '{}'";
    sqlx::raw_sql(priced).execute(&scenery.app.pool).await.unwrap();
    for path in [&turn, &task] {
        assert!(!scenery.page(path).await.contains(">no price<"), "{path}");
    }
}

#[tokio::test]
async fn an_explanation_has_links_and_the_button_that_ends_the_wait() {
    let scenery = Scenery::new().await;
    let ahead = scenery.add_apart("Part 11: The storm.").await;
    let behind = scenery.add_apart("Part 12: The calm.").await;
    let path = format!("/tasks/{}", behind.id);
    let page = scenery.page(&path).await;
    for target in [
        format!("/tasks/{}", ahead.id),
        format!("/work/jobs/{}", behind.job_id),
        "/catalogue/agent/copywriter".to_owned(),
    ] {
        assert!(page.contains(&format!("href=\"{target}")), "{target} in {page}");
    }
    let hold = format!("/v1/jobs/{}/hold", ahead.job_id);
    scenery.send("POST", &hold, &json!({ "reason": "legal reads it first" })).await;
    assert!(scenery.page(&path).await.contains("/do/release_job"));
    let limit = format!("/v1/campaigns/{}/budget", scenery.world.campaign.id);
    scenery.send("PATCH", &limit, &json!({ "micros": null, "tokens": 1 })).await;
    let page = scenery.page(&path).await;
    assert!(
        page.contains("name=\"number:tokens\"") && page.contains("/do/change_budget"),
        "{page}"
    );
    let pause = format!("/v1/campaigns/{}/pause", scenery.world.campaign.id);
    scenery.send("POST", &pause, &json!({ "reason": "client call" })).await;
    let page = scenery.page(&path).await;
    assert!(page.contains("/do/resume_campaign") && !page.contains("/do/release_job"), "{page}");
}

#[tokio::test]
async fn a_key_of_a_campaign_is_offered_only_what_it_may_do() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let campaign = scenery.world.campaign.id;
    let task = scenery.add_apart("Part 11: The storm.").await;
    let hold = format!("/v1/jobs/{}/hold", task.job_id);
    scenery.send("POST", &hold, &json!({ "reason": "legal reads it first" })).await;
    let key = json!({ "name": "studio", "scopes": ["operate"], "campaigns": [campaign] });
    let key = scenery.send("POST", "/v1/keys", &key).await;
    let bound = sign_in(app, key["secret"].as_str().unwrap()).await;
    let admin = sign_in(app, ADMIN_KEY).await;
    let path = format!("/tasks/{}", task.id);
    let (all, own) = (open(app, &path, &admin).await, open(app, &path, &bound).await);
    assert_eq!((all.status, own.status), (200, 200), "{own:?}");
    for refused in ["/do/release_job", "href=\"/work/jobs/", "href=\"/catalogue/agent/"] {
        assert!(all.body.contains(refused), "{refused}: {}", all.body);
        assert!(!own.body.contains(refused), "{refused}: {}", own.body);
    }
    // What is about its campaign stays.
    assert!(own.body.contains("/do/cancel_task"), "{}", own.body);
    // No link of the page is refused.
    let main = own.body.split("<main").nth(1).unwrap().split("</main>").next().unwrap();
    let links = main.split("href=\"").skip(1).filter_map(|rest| rest.split(['"', '#']).next());
    for link in links.filter(|link| link.starts_with('/')).map(|link| link.replace("&amp;", "&")) {
        let reply = open(app, &link, &bound).await;
        assert_ne!(reply.status, 403, "{link}: {reply:?}");
    }
}

#[tokio::test]
async fn the_author_of_a_task_is_named_in_words() {
    let scenery = Scenery::new().await;
    let path = format!("/v1/campaigns/{}/tasks", scenery.world.campaign.id);
    let new = json!({ "agent": "copywriter", "instance": "9", "prompt": "Part 12: The end." });
    let task = scenery.send("POST", &path, &new).await;
    let id = task["id"].as_str().unwrap_or_else(|| panic!("{task}"));
    let page = scenery.page(&format!("/tasks/{id}")).await;
    assert!(page.contains("<bdi title=\"anonymous\">a caller without a key</bdi>"), "{page}");
    let label = "update dalsegno.tasks set added_by = 'cli:0@vm' where id = $1::uuid";
    sqlx::query(label).bind(id).execute(&scenery.app.pool).await.unwrap();
    let page = scenery.page(&format!("/tasks/{id}")).await;
    assert!(page.contains(">user 0 on the command line of vm</bdi>"), "{page}");
}

#[tokio::test]
async fn a_task_that_failed_at_a_budget_offers_a_higher_limit_before_the_retry() {
    let scenery = Scenery::new().await;
    let task = scenery.add_apart("Part 11: The storm.").await;
    let campaign = scenery.world.campaign.id;
    let limit = format!("/v1/campaigns/{campaign}/budget");
    scenery.send("PATCH", &limit, &json!({ "micros": 500_000, "on_limit": "fail" })).await;
    scenery.fail_at_budget(task.id, 500_000, 800_000).await;
    let path = format!("/tasks/{}", task.id);
    let page = scenery.page(&path).await;
    let place =
        |page: &str, part: &str| page.find(part).unwrap_or_else(|| panic!("{part}: {page}"));
    assert!(place(&page, "/do/change_budget") < place(&page, "/do/retry_task"), "{page}");
    assert!(
        page.contains("value=\"0.81\"") && page.contains("of the budget of the campaign"),
        "{page}"
    );
    let budgets = scenery.page("/cost/budgets").await;
    assert!(budgets.contains("1 budget has") && budgets.contains("1 task failed"), "{budgets}");
    assert!(!budgets.contains("No budget has reached its limit"), "{budgets}");
    let own = format!("href=\"/tasks?state=failed&amp;campaign_id={campaign}\"");
    assert_eq!(budgets.matches(&own).count(), 2, "in the sentence and in the row: {budgets}");
    let overview = scenery.page("/").await;
    assert!(overview.contains(&format!("href=\"{path}#enough\"")), "{overview}");
    scenery.send("PATCH", &limit, &json!({ "micros": 810_000 })).await;
    let page = scenery.page(&path).await;
    assert!(!page.contains("/do/change_budget") && page.contains("/do/retry_task"), "{page}");
}

#[tokio::test]
async fn the_limit_in_the_form_lets_the_task_go_on() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let task = scenery.add_apart("Part 11: The storm.").await;
    let limit = format!("/v1/campaigns/{}/budget", scenery.world.campaign.id);
    scenery.send("PATCH", &limit, &json!({ "micros": null, "tokens": 1 })).await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&format!("/tasks/{}", task.id))).await;
    browser.save_picture("task-budget").await;
    browser.click("[popovertarget=raise-limit]").await;
    browser.wait_until("document.querySelector('#raise-limit:popover-open')").await;
    browser.click("#raise-limit .primary").await;
    browser.wait_until("!document.querySelector('#raise-limit')").await;
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn attempts_are_compared_and_reached_by_keys() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let path = format!("/tasks/{}", scenery.retried);
    browser.open(&scenery.url(&format!("{path}?result=diff"))).await;
    let (old, new) = (browser.text(".diff del").await, browser.text(".diff ins").await);
    assert_eq!((old.trim(), new.trim()), ("paraffin", "oil"));
    browser.wait_until("document.querySelector('[data-theme-switch]:not([hidden])')").await;
    browser.press(&["["]).await;
    browser.wait_until("location.search.includes('attempt=1')").await;
    browser.wait_until("document.querySelector('[data-theme-switch]:not([hidden])')").await;
    assert!(
        browser.text("#result").await.contains("smelled of paraffin"),
        "{}",
        browser.text("#result").await
    );
    browser.press(&["]"]).await;
    browser.wait_until("location.search.includes('attempt=2')").await;
    assert!(browser.text("#result").await.contains("smelled of oil"));
    // A task with one attempt has nothing to compare.
    browser.open(&scenery.url(&format!("/tasks/{}?result=diff&attempt=9", scenery.done))).await;
    assert!(!browser.text("#result .answer-bar").await.contains("Diff"));
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn the_copies_of_a_long_prompt_have_the_content_of_their_file() {
    let scenery = Scenery::new().await;
    let short = scenery.page(&format!("/tasks/{}", scenery.waiting)).await;
    assert!(!short.contains("task.json"), "{short}");
    let long = format!("Part 11: The storm. {}", "x".repeat(5_000));
    let task = scenery.add_apart("Part 11.").await;
    // Longer than a prompt of these tests may be.
    sqlx::query("update dalsegno.tasks set prompt = $2 where id = $1")
        .bind(task.id)
        .bind(&long)
        .execute(&scenery.world.pool)
        .await
        .unwrap();
    let page = scenery.page(&format!("/tasks/{}", task.id)).await;
    let file = page.split("The content of task.json").nth(1).unwrap();
    let file = file.split("data-copy>").nth(1).unwrap().split("</pre>").next().unwrap();
    let body: serde_json::Value = serde_json::from_str(&file.replace("&quot;", "\"")).unwrap();
    assert_eq!((&body["agent"], &body["instance"]), (&json!("copywriter"), &json!("second")));
    let prompt = body["prompt"].as_str().unwrap();
    assert!(prompt.starts_with("Part 11: The storm.") && prompt.ends_with('…'), "{prompt}");
    assert!(prompt.chars().count() < 100, "{prompt}");
}
