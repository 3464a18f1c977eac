//! The pages of flows: the form made from a template, the graph, and the actions.

use serde_json::{Value, json};

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{HTML, KEYS, form_token, key, open, post, sign_in},
};
use crate::{
    app::{TestApp, TestDatabase},
    http::client::send,
};

/// Starts a flow over the API, and returns its id.
async fn started(scenery: &Scenery) -> String {
    let path = format!("/v1/campaigns/{}/flows", scenery.world.campaign.id);
    let inputs = json!({ "topic": "The harbour <b>in winter</b>", "parts": ["The quay", "The boats", "The lamp room"] });
    let body = json!({ "template": "article-series", "inputs": inputs });
    scenery.send("POST", &path, &body).await["id"].as_str().unwrap().to_owned()
}

/// Ends the plan, runs one draft and fails another.
async fn advance(scenery: &Scenery, flow: &str) {
    let steps = "with steps as (select task_id, step, row_number() over (partition by step order by place) as n
                   from dalsegno.flow_steps where flow_id = $1::uuid)
      update dalsegno.tasks as t
         set state = case when s.step = 'plan' or s.n = 3 then 'done' when s.n = 2 then 'failed' else 'running' end,
             started_at = '2026-11-20 11:50+00',
             ended_at = case when s.step = 'plan' or s.n > 1 then '2026-11-20 11:50+00'::timestamptz + make_interval(secs => 30 * s.n) end,
             result = case when s.step = 'plan' or s.n = 3 then 'Done.' end,
             error = case when s.n = 2 then 'the provider rejected the prompt' end
        from steps as s where s.task_id = t.id and s.step in ('plan', 'draft')";
    sqlx::query(steps).bind(flow).execute(&scenery.app.pool).await.unwrap();
}

#[tokio::test]
async fn a_flow_is_started_with_the_inputs_of_its_template() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let campaign = scenery.world.campaign.id.to_string();
    let (_, secret) = key(app, "ann", "operate").await;
    let cookie = sign_in(app, &secret).await;
    let path = format!("/flows/start?template=article-series&campaign_id={campaign}");
    let page = open(app, &path, &cookie).await.body;
    assert!(
        page.contains("name=\"inputs.topic\"") && page.contains("name=\"lines:inputs.parts\""),
        "{page}"
    );
    let token = form_token(&page);
    let fields = [
        ("form_token", token.as_str()),
        ("then", "/flows/{id}"),
        ("id", &campaign),
        ("template", "article-series"),
        ("inputs.topic", "The%20harbour"),
        ("lines:inputs.parts", "The%20quay%0D%0A%0D%0AThe%20boats"),
    ];
    let count = async || {
        let count = sqlx::query_scalar("select count(*) from dalsegno.flows");
        count.fetch_one(&app.pool).await.unwrap()
    };
    let n_flows: i64 = count().await;
    let estimate = post(app, "/flows/start", &cookie, &fields, &[]).await;
    assert!(estimate.status == 200 && estimate.body.contains("Estimate"), "{estimate:?}");
    assert!(estimate.body.contains("The boats"), "the form keeps its texts: {estimate:?}");
    assert_eq!(count().await, n_flows, "an estimate starts nothing");
    let missing = post(app, "/flows/start", &cookie, &fields[..4], &[]).await;
    assert!(missing.status == 200 && missing.body.contains("topic"), "{missing:?}");
    let reply = post(app, "/do/start_flow", &cookie, &fields, &[]).await;
    assert_eq!(reply.status, 303, "{reply:?}");
    let target = reply.head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
    let page = open(app, target, &cookie).await.body;
    assert_eq!(page.matches("class=\"edge").count(), 7, "{page}");
    assert!(page.contains("The boats"), "{page}");
    // A missing input is refused, and the form says which.
    let missing = post(app, "/do/start_flow", &cookie, &fields[..4], &[]).await;
    assert!(missing.status == 422 && missing.body.contains("topic"), "{missing:?}");
}

#[tokio::test]
async fn actions_of_a_flow_need_their_scope() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let flow = started(&scenery).await;
    let path = format!("/flows/{flow}");
    let actions = ["pause_flow", "retry_flow", "cancel_flow"];
    let (_, secret) = key(app, "ben", "read").await;
    let reader = sign_in(app, &secret).await;
    let page = open(app, &path, &reader).await.body;
    assert!(page.contains("Steps as a table"), "{page}");
    let list = open(app, "/flows", &reader).await.body;
    let token = form_token(&list);
    for action in actions {
        assert!(!page.contains(&format!("/do/{action}")), "{action}");
        let fields = [("form_token", token.as_str()), ("id", &flow), ("from", "plan")];
        let reply = post(app, &format!("/do/{action}"), &reader, &fields, &[]).await;
        assert_eq!(reply.status, 403, "{action}: {reply:?}");
    }
    let start = open(app, "/flows/start?template=reviewed-text", &reader).await.body;
    assert!(start.contains("The scope") || start.contains("the scope"), "{start}");

    let (_, secret) = key(app, "ann", "operate").await;
    let operator = sign_in(app, &secret).await;
    let page = open(app, &path, &operator).await.body;
    let token = form_token(&page);
    for (action, state) in [
        ("pause_flow", "paused"),
        ("resume_flow", "running"),
        ("cancel_flow", "cancelled"),
        ("retry_flow", "running"),
    ] {
        let mut fields =
            vec![("form_token", token.as_str()), ("id", flow.as_str()), ("then", path.as_str())];
        if action == "retry_flow" {
            fields.push(("from", "plan"));
        }
        let reply = post(app, &format!("/do/{action}"), &operator, &fields, &[]).await;
        assert_eq!(reply.status, 303, "{action}: {reply:?}");
        let page = open(app, &path, &operator).await.body;
        assert!(page.contains(&format!("explain {state}")), "{action}: {page}");
    }
}

#[tokio::test]
async fn empty_pages_of_flows_name_a_command() {
    let app = TestApp::start_on(TestDatabase::migrated().await).await;
    let list = send(app.address, "GET", "/flows", &[HTML], "").await;
    assert!(list.body.contains("dalsegno flow start --campaign"), "{list:?}");
    let start = send(app.address, "GET", "/flows/start?template=reviewed-text", &[HTML], "").await;
    assert!(start.body.contains("dalsegno campaign create"), "{start:?}");
    let none = send(app.address, "GET", "/flows?state=failed", &[HTML], "").await;
    assert!(none.body.contains("Show all flows"), "{none:?}");
}

#[tokio::test]
async fn the_whole_graph_of_a_template_is_in_sight() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1280, 900).await;
    browser.open(&scenery.url("/flows/start?template=article-series")).await;
    let seen = "const frame = document.querySelector('.graph').closest('.wide');
        return frame.scrollWidth <= frame.clientWidth && document.querySelectorAll('.graph .node').length";
    assert_eq!(browser.run(seen).await, 4);
}

#[tokio::test]
async fn the_graph_shows_states_and_the_critical_path() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let flow = started(&scenery).await;
    advance(&scenery, &flow).await;
    let path = format!("/flows/{flow}");
    browser.open(&scenery.url(&path)).await;
    browser.save_in_all_looks("flow").await;
    browser.open(&scenery.url("/flows")).await;
    browser.save_in_all_looks("flows-list").await;
    browser.open(&scenery.url(&format!("{path}?"))).await;
    let critical = "return document.querySelectorAll('.graph .node.critical').length";
    assert_eq!(browser.run(critical).await, 4, "plan, a draft, review, finish");
    assert_eq!(
        browser.run("return document.querySelectorAll('.graph .node.failed').length").await,
        1
    );
    // An event of a step announces itself.
    let detail: Value = scenery.app.get(&format!("/v1/flows/{flow}")).await.body.parse().unwrap();
    let waiting = detail["steps"].as_array().unwrap().iter().find(|it| it["state"] == "queued");
    let task = waiting.unwrap()["task_id"].as_str().unwrap();
    browser.wait_until("document.querySelector('#feed-line:not([hidden])')").await;
    send(scenery.app.address, "POST", &format!("/v1/tasks/{task}/cancel"), &[], "{}")
        .await
        .expect(200);
    browser.wait_until("document.querySelector('.fresh:not([hidden])')").await;
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn a_flow_without_a_running_step_says_why_the_next_one_waits() {
    let scenery = Scenery::new().await;
    let flow = started(&scenery).await;
    let explained = async |words: &[&str]| {
        let page = scenery.page(&format!("/flows/{flow}")).await;
        let part = page.split("id=\"explain\"").nth(1).unwrap().split("</section>").next().unwrap();
        for words in words {
            assert!(part.contains(words), "{words}: {part}");
        }
    };
    explained(&["No step runs now: ", "<bdi>plan</bdi></a>: It "]).await;
    let pause = format!("/v1/campaigns/{}/pause", scenery.world.campaign.id);
    scenery.send("POST", &pause, &json!({ "reason": "client call" })).await;
    explained(&["<bdi>plan</bdi></a>: Its campaign", "client call"]).await;
    advance(&scenery, &flow).await;
    let page = scenery.page(&format!("/flows/{flow}")).await;
    assert!(!page.contains("client call"), "a step runs: {page}");
}
