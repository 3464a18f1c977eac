//! Runs of evals on the pages of costs: figures beside the run before, and links into each answer.

use serde_json::{Value, json};

use super::{browser::Browser, scenery::Scenery};
use crate::{
    app::{TestApp, TestDatabase},
    http::client::send,
};

impl Scenery {
    /// Records two runs of an eval, the second one better and dearer.
    pub async fn record_runs(&self) -> [i64; 2] {
        let first = self.record("abc", "2026-11-19T09:00:00Z", 1, 200_000).await;
        let second = self.record("def", "2026-11-20T09:00:00Z", 2, 300_000).await;
        [first, second]
    }

    async fn record(&self, run: &str, began_at: &str, passed: usize, micros: i64) -> i64 {
        let variant = |name: &str, passed: usize| json!({ "variant": name, "agent": "copywriter", "answers": 2, "passed": passed, "tokens": 900, "micros": micros, "median_ms": 4_200 });
        let answer = |variant: &str, case: &str, is_passed: bool, source: Value| {
            let mut answer = json!({ "variant": variant, "case": case, "repetition": 1, "passed": is_passed, "failed_checks": u32::from(!is_passed), "tokens": 450, "micros": micros / 2, "took_ms": 4_200 });
            answer.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
            answer
        };
        let (task, turn) =
            (json!({ "task_id": self.done }), json!({ "session_id": self.session_id, "turn": 1 }));
        let body = json!({
            "eval": "captions", "run": run, "began_at": began_at, "unfinished": 0, "judge_micros": 1_000,
            "variants": [variant("now", passed), variant("next", 2)],
            "answers": [answer("now", "lamp", passed > 1, task), answer("next", "lamp", true, turn)],
        });
        let path = format!("/v1/campaigns/{}/evals", self.world.campaign.id);
        self.send("POST", &path, &body).await["id"].as_i64().unwrap()
    }
}

#[tokio::test]
async fn a_run_is_compared_with_the_one_before_and_leads_to_its_answers() {
    let scenery = Scenery::new().await;
    let [first, second] = scenery.record_runs().await;
    let campaign = scenery.world.campaign.id;
    let list = scenery.page("/cost/evals").await;
    for part in ["captions", "50 %", "100 %", "up 50 points", "4.2 s"] {
        assert!(list.contains(part), "{part} in {list}");
    }
    assert!(list.find(&format!("/{second}\"")) < list.find(&format!("/{first}\"")), "{list}");
    let one = scenery.page(&format!("/cost/evals/{campaign}/{second}")).await;
    assert!(one.contains(&format!("/cost/evals/{campaign}/{first}")), "the run before: {one}");
    assert!(one.contains(&format!("/tasks/{}", scenery.done)), "{one}");
    assert!(one.contains(&format!("/sessions/{}/turns/1", scenery.session_id)), "{one}");
    let earlier = scenery.page(&format!("/cost/evals/{campaign}/{first}")).await;
    assert!(earlier.contains("1 check") && earlier.contains("the first run"), "{earlier}");
    let other = scenery.page("/cost/evals?eval=other").await;
    assert!(other.contains("dalsegno eval run FILE"), "{other}");
    // The same run again replaces its results.
    assert_eq!(scenery.record("abc", "2026-11-19T09:00:00Z", 2, 200_000).await, first);
}

#[tokio::test]
async fn a_variant_without_a_price_is_not_free() {
    let scenery = Scenery::new().await;
    let call = "insert into dalsegno.usage (called_at, campaign_id, session_id, turn, agent, model, provider, purpose, outcome, cost_micros, input_tokens)
                select created_at, campaign_id, session_id, turn, agent, 'local', 'west', 'turn', 'done', 0, 450 from dalsegno.tasks where id = $1";
    sqlx::query(call).bind(scenery.done).execute(&scenery.app.pool).await.unwrap();
    let variant = |name: &str, micros: i64| json!({ "variant": name, "agent": "copywriter", "answers": 2, "passed": 2, "tokens": 900, "micros": micros, "median_ms": 4_200 });
    let answer = |variant: &str, micros: i64| json!({ "variant": variant, "case": "lamp", "repetition": 1, "passed": true, "failed_checks": 0, "tokens": 450, "micros": micros, "took_ms": 4_200, "task_id": scenery.done });
    let body = json!({
        "eval": "captions", "run": "abc", "began_at": "2026-11-19T09:00:00Z", "unfinished": 0, "judge_micros": 0,
        "variants": [variant("now", 200_000), variant("next", 0)], "answers": [answer("now", 100_000), answer("next", 0)],
    });
    let campaign = scenery.world.campaign.id;
    let run = scenery.send("POST", &format!("/v1/campaigns/{campaign}/evals"), &body).await;
    assert_eq!(run["variants_without_price"], json!(["next"]), "{run}");
    let listed = scenery.get_json("/v1/evals").await;
    assert_eq!(listed["items"][0]["variants_without_price"], json!(["next"]), "{listed}");
    let page = scenery.page(&format!("/cost/evals/{campaign}/{}", run["id"])).await;
    // Of the variant, and of its answer.
    assert_eq!(page.matches(">no price</a>").count(), 2, "{page}");
    assert!(page.contains("Costs cannot be compared") && page.contains("models of next"), "{page}");
}

#[tokio::test]
async fn a_judge_without_a_price_is_not_free() {
    let scenery = Scenery::new().await;
    let campaign = scenery.world.campaign.id;
    let body = json!({
        "eval": "captions", "run": "abc", "began_at": "2026-11-19T09:00:00Z", "unfinished": 0, "judge_micros": 0,
        "variants": [], "answers": [],
    });
    let run = scenery.send("POST", &format!("/v1/campaigns/{campaign}/evals"), &body).await;
    let path = format!("/cost/evals/{campaign}/{}", run["id"]);
    let page = scenery.page(&path).await;
    assert!(page.contains("<dt>Judge</dt><dd>none</dd>"), "{page}");
    // The task of the judge, on a model without a price.
    for sql in [
        "insert into dalsegno.task_labels (task_id, metadata) values ($1, '{\"eval_judged\": \"captions\", \"eval_run\": \"abc\"}')
             on conflict (task_id) do update set metadata = excluded.metadata",
        "update dalsegno.tasks set spent_micros = 0, spent_tokens = 450 where id = $1",
        "insert into dalsegno.usage (called_at, campaign_id, session_id, turn, agent, model, provider, purpose, outcome, cost_micros, input_tokens)
             select created_at, campaign_id, session_id, turn, agent, 'local', 'west', 'turn', 'done', 0, 450 from dalsegno.tasks where id = $1",
    ] {
        sqlx::query(sql).bind(scenery.done).execute(&scenery.app.pool).await.unwrap();
    }
    let page = scenery.page(&path).await;
    let (_, judge) = page.split_once("<dt>Judge</dt>").unwrap();
    let judge = judge.split("</dd>").next().unwrap();
    assert!(judge.contains(">no price</a>") && !judge.contains("$0.00"), "{judge}");
}

#[tokio::test]
async fn results_hold_names_only_and_belong_to_a_campaign() {
    let scenery = Scenery::new().await;
    let [first, _] = scenery.record_runs().await;
    let campaign = scenery.world.campaign.id;
    let address = scenery.app.address;
    let path = format!("/v1/campaigns/{campaign}/evals");
    let text = json!({ "eval": "The lamp, as ann wrote it", "run": "abc", "began_at": "2026-11-19T09:00:00Z", "unfinished": 0, "judge_micros": 0, "variants": [], "answers": [] });
    send(address, "POST", &path, &[], &text.to_string()).await.problem(422, "bad_eval_name");
    let other = scenery.hostile_campaign;
    let path = format!("/v1/campaigns/{other}/evals/{first}");
    send(address, "GET", &path, &[], "").await.problem(404, "unknown_eval_run");
    let listed = scenery.get_json(&format!("/v1/evals?campaign_id={other}")).await;
    assert_eq!(listed["items"], json!([]));
    let listed = scenery.get_json("/v1/evals?limit=1").await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let next =
        scenery.get_json(&format!("/v1/evals?cursor={}", listed["next"].as_str().unwrap())).await;
    assert_eq!(next["items"][0]["id"], first);
}

#[tokio::test]
async fn an_empty_list_of_evals_names_a_command() {
    let app = TestApp::start_on(TestDatabase::migrated().await).await;
    let reply = send(app.address, "GET", "/cost/evals", &[("Accept", "text/html")], "").await;
    assert!(reply.status == 200 && reply.body.contains("dalsegno eval run FILE"), "{reply:?}");
}

#[tokio::test]
async fn evals_fit_into_each_width() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    let [_, second] = scenery.record_runs().await;
    let one = format!("/cost/evals/{}/{second}", scenery.world.campaign.id);
    for (name, path) in [("evals", "/cost/evals"), ("eval-run", &one)] {
        browser.open(&scenery.url(path)).await;
        browser.save_in_all_looks(name).await;
    }
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test]
async fn a_campaign_of_an_eval_is_not_offered_before_others() {
    let scenery = Scenery::new().await;
    let new = json!({ "name": "eval captions", "brief": "", "tags": ["eval"] });
    let eval = scenery.send("POST", "/v1/campaigns", &new).await;
    let eval = eval["id"].as_str().unwrap();
    let usual = scenery.world.campaign.id;
    let overview = scenery.page("/").await;
    let rail = overview.split("id=\"rail\"").nth(1).unwrap().split("</nav>").next().unwrap();
    assert!(rail.contains(&format!("/campaigns/{usual}\"")) && !rail.contains(eval), "{rail}");
    for path in ["/flows/start?template=reviewed-text", "/tasks/new", "/schedules"] {
        let page = scenery.page(path).await;
        let at = |id: &str| page.find(&format!("<option value=\"{id}\"")).unwrap_or(usize::MAX);
        let (usual, eval) = (at(&usual.to_string()), at(eval));
        assert!(usual < eval && eval < usize::MAX, "{path}: {page}");
    }
}
