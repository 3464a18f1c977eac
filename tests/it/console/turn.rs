//! The page of a turn whose calls a worker has made: phases, calls and tools, and turns of other sessions.

use std::sync::Arc;

use dalsegno::domain::{manifests, tasks::Task};
use serde_json::json;

use super::{
    browser::Browser,
    scenery::Scenery,
    sign_in::{KEYS, key as key_of, open, sign_in},
};
use crate::{
    app::{TestApp, noon},
    board::setup::BoardSetup,
    providers::fake_ollama::Play,
};

/// Two sessions with a turn each. The second turn has two calls and a tool between them.
struct TwoTurns {
    app: TestApp,
    first: Task,
    second: Task,
    _setup: BoardSetup,
}

impl TwoTurns {
    async fn new() -> Self {
        let setup = BoardSetup::new(&["ann", "bob"], "tools: mcp__dalsegno__status\n").await;
        let fixture = &setup.fixture;
        setup.fake.state.plays.lock().unwrap().extend([
            Play::Says(&["Part one."]),
            Play::Calls(vec![("status", json!({}))]),
            Play::Says(&["Part ", "two."]),
        ]);
        let worker = fixture.start_worker().await;
        let first = fixture.done(&setup.ask("ann", "Write part one.", None).await).await;
        let second = fixture.done(&setup.ask("bob", "Write part two.", None).await).await;
        worker.stop().await;
        let clock = Arc::new(fixture.clock.clone());
        let app = TestApp::start_over(fixture.pool.clone(), &[], clock).await;
        Self { app, first, second, _setup: setup }
    }

    fn path(task: &Task) -> String {
        format!("/sessions/{}/turns/{}", task.session_id.unwrap(), task.turn.unwrap())
    }
}

#[tokio::test]
async fn a_turn_shows_its_phases_calls_and_tools() {
    let turns = TwoTurns::new().await;
    let page = turns.app.get(&TwoTurns::path(&turns.second)).await;
    assert_eq!(page.status, 200, "{}", page.body);
    let rows: Vec<_> = ["Load and check", "Begin", "status", "Commit"]
        .iter()
        .filter(|row| page.body.contains(&format!(">{row}<")))
        .collect();
    assert!(page.body.contains("2 calls, 1 tool"), "{}", page.body);
    let (session, turn) = (turns.second.session_id.unwrap(), turns.second.turn.unwrap());
    let rerun = format!("dalsegno turn rerun {session} --turn {turn} --call 1");
    assert!(page.body.contains(&rerun), "{}", page.body);
    assert_eq!(rows, [&"Begin", &"status"], "the clock of the test stands still: {}", page.body);
}

#[tokio::test]
async fn an_ended_attempt_names_its_worker_as_long_as_the_run_is_kept() {
    let turns = TwoTurns::new().await;
    let worker = format!("(pid {})", std::process::id());
    let paths = [
        format!("/tasks/{}", turns.second.id),
        TwoTurns::path(&turns.second),
        format!("/work/jobs/{}", turns.second.job_id),
    ];
    for path in &paths {
        let page = turns.app.get(path).await.body;
        assert!(page.contains(&worker), "{path}: {page}");
    }
    let page = turns.app.get(&paths[1]).await.body;
    assert!(page.contains("<h2>Answer</h2>") && page.contains("Part two."), "{page}");
    sqlx::query("delete from dalsegno.runs").execute(&turns.app.pool).await.unwrap();
    for path in &paths[..2] {
        let page = turns.app.get(path).await.body;
        assert!(!page.contains(&worker) && page.contains("no longer kept"), "{path}: {page}");
    }
}

#[tokio::test]
async fn a_turn_is_compared_with_one_of_another_session() {
    let Some(browser) = Browser::start().await else { return };
    let turns = TwoTurns::new().await;
    let url = |path: &str| format!("http://{}{path}", turns.app.address);
    browser.resize(1440, 900).await;
    browser.open(&url(&TwoTurns::path(&turns.second))).await;
    browser.run("document.getElementById('with').value = ''").await;
    browser.write("#with", &url(&TwoTurns::path(&turns.first))).await;
    browser.save_picture("turn-real").await;
    browser.click("form[action*='/turns/'] .btn:not(.primary)").await;
    browser.wait_until("document.querySelector('#compared')").await;
    let text = browser.text("#compared").await;
    assert!(text.contains("qwen3:8b") && text.contains("Write part"), "{text}");
    assert!(browser.has(&format!("#compared a[href='{}']", TwoTurns::path(&turns.first))).await);
    browser.save_picture("turn-compared").await;
    browser.open(&url(&format!("{}?with=seven", TwoTurns::path(&turns.second)))).await;
    assert!(browser.text("#compared").await.contains("names no turn"));
    browser.open(&url(&format!("{}?with=99", TwoTurns::path(&turns.second)))).await;
    assert!(browser.text("#compared").await.contains("99"));
    let (number, path) = (turns.second.turn.unwrap(), TwoTurns::path(&turns.second));
    browser.open(&url(&format!("{path}?with={number}"))).await;
    assert!(browser.text("#compared").await.contains("the turn itself"));
    assert!(browser.complaints().await.is_empty());
}

#[tokio::test]
async fn turns_are_compared_from_the_older_to_the_newer_one() {
    let turns = TwoTurns::new().await;
    let (first, second) = (TwoTurns::path(&turns.first), TwoTurns::path(&turns.second));
    // The clock of the test stands still.
    sqlx::query("update dalsegno.turns set started_at = started_at - interval '1 hour' where session_id = $1")
        .bind(turns.first.session_id)
        .execute(&turns.app.pool)
        .await
        .unwrap();
    for (opened, with) in [(&first, &second), (&second, &first)] {
        let page = turns.app.get(&format!("{opened}?with={with}")).await.body;
        let way = [
            format!("From the older <a href=\"{first}\">"),
            format!("to the newer <a href=\"{second}\">"),
        ];
        assert!(way.iter().all(|words| page.contains(words)), "{opened}: {page}");
    }
}

#[tokio::test]
async fn a_prompt_leads_to_its_version_if_the_caller_may_see_it() {
    let scenery = Scenery::with(&KEYS).await;
    let campaign = scenery.world.campaign.id;
    let manifest = json!({ "parts": [{ "kind": "agent_prompt", "tokens": 9, "sent": true, "why": "every_call" }] });
    let context = manifests::New {
        session_id: scenery.session_id,
        turn: 1,
        call: 0,
        manifest: &manifest,
        sha256: [1; 32],
        estimated_tokens: 9,
        real_tokens: None,
    };
    manifests::insert(&scenery.app.pool, &context, noon()).await.unwrap();
    let path = format!("/sessions/{}/turns/1", scenery.session_id);
    let key = json!({ "name": "bound", "scopes": ["read"], "campaigns": [campaign] });
    let bound = scenery.send("POST", "/v1/keys", &key).await;
    let bound = sign_in(&scenery.app, bound["secret"].as_str().unwrap()).await;
    let (_, free) = key_of(&scenery.app, "ann", "read").await;
    let free = sign_in(&scenery.app, &free).await;
    for (cookie, is_linked) in [(&free, true), (&bound, false)] {
        let page = open(&scenery.app, &path, cookie).await;
        assert!(page.status == 200 && page.body.contains("agent prompt"), "{page:?}");
        let link = "/catalogue/agent/copywriter?part=versions&amp;version=";
        assert_eq!(page.body.contains(link), is_linked, "{page:?}");
    }
    // The page of an agent without a file does not exist.
    let gone = "update dalsegno.sessions set agent_type = 'gone' where id = $1";
    sqlx::query(gone).bind(scenery.session_id).execute(&scenery.app.pool).await.unwrap();
    let page = open(&scenery.app, &path, &free).await;
    assert!(page.status == 200 && !page.body.contains("part=versions"), "{page:?}");
}

#[tokio::test]
async fn a_turn_offers_forks_around_it_and_a_rerun_with_another_prompt() {
    let scenery = Scenery::new().await;
    let session = scenery.session_id;
    let numbers = "select number from dalsegno.turns where session_id = $1 and (state = 'done') = $2 order by number desc";
    let turns = async |is_done: bool| -> Vec<i32> {
        let numbers = sqlx::query_scalar(numbers).bind(session).bind(is_done);
        numbers.fetch_all(&scenery.app.pool).await.unwrap()
    };
    let done = turns(true).await;
    let (last, before) = (done[0], done[1]);
    let page = scenery.page(&format!("/sessions/{session}/turns/{last}")).await;
    for part in [
        &format!("<option value=\"{last}\">after this turn"),
        &format!("<option value=\"{before}\">before this turn, after turn {before}"),
        &format!("dalsegno session fork {session} --at {last}"),
        "name=\"agent_file\"",
        "name: copywriter",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    // A fork begins after a turn that is done.
    let others = turns(false).await;
    assert!(others.iter().any(|number| (before..last).contains(number)), "{others:?}");
    for number in others {
        assert!(!page.contains(&format!("<option value=\"{number}\"")), "{number} in {page}");
    }
    let first = scenery.page(&format!("/sessions/{session}/turns/1")).await;
    assert!(first.contains("after this turn") && !first.contains("before this turn"), "{first}");
}

#[tokio::test]
async fn reruns_stand_below_their_call_and_are_followed_until_they_end() {
    let turns = TwoTurns::new().await;
    let path = TwoTurns::path(&turns.second);
    let body = json!({ "call": 2, "times": 1 }).to_string();
    let rerun = format!("/v1{path}/reruns");
    crate::http::client::send(turns.app.address, "POST", &rerun, &[], &body).await.expect(202);
    let shown = async || turns.app.get(&format!("{path}?call=2")).await.body;
    let page = shown().await;
    assert!(page.contains(">the call</td>"), "{page}");
    assert!(page.contains("hx-trigger=\"every 2s\"") && page.contains("Rerun 1: "), "{page}");
    let end = "update dalsegno.reruns set state = 'done', answer = 'Part 2.', ended_at = now(), output_tokens = 3, took_ms = 40";
    sqlx::query(end).execute(&turns.app.pool).await.unwrap();
    let page = shown().await;
    assert!(!page.contains("every 2s") && !page.contains("Rerun 1: "), "{page}");
    assert!(page.contains("Compared with the answer of the call"), "{page}");
}

#[tokio::test]
async fn rows_of_ended_reruns_stay_while_others_are_followed() {
    let Some(browser) = Browser::start().await else { return };
    let turns = TwoTurns::new().await;
    let path = TwoTurns::path(&turns.second);
    let body = json!({ "call": 2, "times": 2 }).to_string();
    let rerun = format!("/v1{path}/reruns");
    crate::http::client::send(turns.app.address, "POST", &rerun, &[], &body).await.expect(202);
    let end = async |number: i32| {
        let end = "update dalsegno.reruns set state = 'done', answer = 'Part 2.', ended_at = now(), output_tokens = 3, took_ms = 40
                    where number = $1";
        sqlx::query(end).bind(number).execute(&turns.app.pool).await.unwrap();
    };
    end(1).await;
    let page = turns.app.get(&format!("{path}?call=2")).await.body;
    assert!(page.contains("hx-select-oob=\"#rerun-2\""), "{page}");
    browser.resize(1440, 900).await;
    browser.open(&format!("http://{}{path}?call=2", turns.app.address)).await;
    browser.run("document.querySelector('#rerun-1 details').open = true").await;
    end(2).await;
    browser.wait_until("document.querySelector('#rerun-2 details')").await;
    let open = browser.run("return document.querySelector('#rerun-1 details').open").await;
    assert_eq!(open, true, "an unfolded answer stays unfolded");
    browser.wait_until("!document.querySelector('#reruns-waiting')").await;
}
