//! The pages of agents, skills, nodes and flow templates.

use chrono::TimeDelta;
use serde_json::{Value, json};
use sqlx::Row as _;
use tempfile::TempDir;

use super::{
    browser::Browser,
    scenery::{HOSTILE, Scenery},
    sign_in::{HTML, KEYS, form_token, key, open, post, sign_in},
};
use crate::{
    app::{TestApp, TestDatabase, noon},
    conversations::world::TurnSettings,
    http::client::send,
};

/// A folder with a usable agent, a broken one and a hostile one.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "copywriter.md",
        "---\nname: copywriter\ndescription: Writes parts\n---\nYou write **short** parts.\n",
    );
    write(
        "reviewer.md",
        "---\nname: reviewer\ndescription: Reads parts\nprovider: sim\nmentons: true\nskills: [editorial]\n---\nYou read.\n",
    );
    write(
        "planner.md",
        &format!("---\nname: planner\ndescription: Plans parts\n---\nYou plan. {HOSTILE}\n"),
    );
    folder
}

async fn page(app: &TestApp, path: &str) -> String {
    let reply = send(app.address, "GET", path, &[HTML], "").await;
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    reply.body
}

#[tokio::test]
async fn problems_of_files_stand_at_their_lines() {
    let folder = folder();
    let set = [("agents.folder", folder.path().to_str().unwrap())];
    let scenery = Scenery::with(&set).await;
    let app = &scenery.app;
    let list = page(app, "/catalogue").await;
    // The built-in flow templates name the broken agent, so they are refused, too.
    assert!(list.contains("3 files have problems") && list.contains("refused"), "{list}");
    let broken = page(app, "/catalogue/agent/reviewer").await;
    let (line, next) = (broken.find("id=\"L5\"").unwrap(), broken.find("id=\"L6\"").unwrap());
    let note = broken[line..next].find("class=\"problem\"");
    assert!(note.is_some() && broken[line..next].contains("mentions"), "{broken}");
    assert!(broken.contains("tasks of this agent wait"), "{broken}");
    let template = "href=\"/catalogue/flow/reviewed-text\"";
    assert!(broken.contains(template) && broken.contains("cannot be started"), "{broken}");
    assert!(!broken.contains("No flow template names it"), "{broken}");
    let usable = page(app, "/catalogue/agent/copywriter").await;
    assert!(usable.contains("<strong>short</strong>"), "{usable}");
    let hostile = page(app, "/catalogue/agent/planner").await;
    assert!(!hostile.contains("<script>document"), "{hostile}");
    // The operations behind the page.
    let files = send(app.address, "GET", "/v1/files", &[], "").await.expect(200);
    let names: Vec<_> = files["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["kind"] == "agent")
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["copywriter", "planner", "reviewer"]);
    let file = send(app.address, "GET", "/v1/files/agent/reviewer", &[], "").await.expect(200);
    assert!(file["text"].as_str().unwrap().contains("mentons: true"), "{file}");
    assert_eq!(file["problems"].as_array().unwrap().len(), 2, "{file}");
    let unknown = send(app.address, "GET", "/v1/files/agent/revewer", &[], "").await;
    assert!(unknown.problem(404, "unknown_file").contains("did you mean `reviewer`?"));
}

#[tokio::test]
async fn built_in_files_name_their_uses() {
    let scenery = Scenery::new().await;
    let app = &scenery.app;
    for (path, words) in [
        ("/catalogue/agent/copywriter", "reviewed-text"),
        ("/catalogue/skill/editorial-style", "/catalogue/agent/copywriter"),
        ("/catalogue/node/meta-analysis", "Look back at what you did"),
        ("/catalogue/flow/article-series", "/catalogue/agent/planner"),
    ] {
        let shown = page(app, path).await;
        assert!(shown.contains(words), "{path}: {shown}");
    }
    let missing = send(app.address, "GET", "/catalogue/agent/nothing", &[HTML], "").await;
    assert!(missing.status == 404 && missing.body.contains("dalsegno agent files"), "{missing:?}");
}

#[tokio::test]
async fn the_prompt_that_results_and_its_versions_are_shown() {
    let scenery = Scenery::new().await;
    let app = &scenery.app;
    let agent = "/catalogue/agent/copywriter";
    let preview = page(app, &format!("{agent}?part=prompt&prompt=Write+part+11.")).await;
    assert!(preview.contains("System prompt") && preview.contains("Write part 11."), "{preview}");
    let versions = page(app, &format!("{agent}?part=versions")).await;
    let hash =
        sqlx::query_scalar::<_, String>("select prompt_hash from dalsegno.sessions where id = $1")
            .bind(scenery.session_id)
            .fetch_one(&app.pool)
            .await
            .unwrap();
    assert!(versions.contains(&hash), "{versions}");
    let one = page(app, &format!("{agent}?part=versions&version={hash}")).await;
    assert!(one.contains("id=\"version\""), "{one}");
    let listed =
        send(app.address, "GET", "/v1/agents/copywriter/versions", &[], "").await.expect(200);
    assert_eq!(
        (&listed["items"][0]["is_current"], &listed["items"][0]["sessions"]),
        (&false.into(), &1.into())
    );
    let unseen = page(app, "/catalogue/agent/reviewer?part=versions").await;
    assert!(unseen.contains("No call has seen this prompt"), "{unseen}");
}

/// Adds a later version of the copywriter's prompt. Returns the hashes of the earlier one and of this one.
async fn add_version(scenery: &Scenery) -> (String, &'static str) {
    let earlier: String =
        sqlx::query_scalar("select prompt_hash from dalsegno.sessions where id = $1")
            .bind(scenery.session_id)
            .fetch_one(&scenery.app.pool)
            .await
            .unwrap();
    let later = "1111111111111111111111111111111111111111111111111111111111111111";
    let settings = TurnSettings {
        prompt_hash: later,
        at: noon() + TimeDelta::minutes(1),
        ..TurnSettings::default()
    };
    scenery.world.turn("Part 10: The harbour bell.", settings).await;
    (earlier, later)
}

#[tokio::test]
async fn links_to_comparisons_are_in_sight_on_one_line() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    add_version(&scenery).await;
    for width in [1280, 360] {
        browser.resize(width, 900).await;
        browser.open(&scenery.url("/catalogue/agent/copywriter?part=versions")).await;
        let seen = "return [...document.querySelectorAll('.compare a')].map((link) => {
            const box = link.getBoundingClientRect(), frame = link.closest('.wide').getBoundingClientRect();
            return link.getClientRects().length === 1 && box.left >= frame.left - 1 && box.right <= frame.right + 1;
          })";
        assert_eq!(browser.run(seen).await, serde_json::json!([true]), "{width}");
        let is_whole = "const frame = document.querySelector('.compare').closest('.wide'); return frame.scrollWidth <= frame.clientWidth";
        assert_eq!(browser.run(is_whole).await, true, "all columns at {width}");
    }
}

#[tokio::test]
async fn versions_of_a_prompt_are_compared_from_the_older_to_the_newer_one() {
    let scenery = Scenery::new().await;
    let (earlier, later) = add_version(&scenery).await;
    let here = "/catalogue/agent/copywriter?part=versions";
    let link = |version: &str, with: &str| {
        format!("href=\"{here}&amp;version={version}&amp;with={with}#version\"")
    };
    let list = scenery.page(here).await;
    assert!(
        list.contains(&format!("{}>Compare with the one before", link(later, &earlier))),
        "{list}"
    );
    let way = format!(
        "From the older version <code>{}</code> to the newer version <code>{}</code>",
        &earlier[..12],
        &later[..12]
    );
    let old = scenery.page(&format!("{here}&version={earlier}")).await;
    for part in [
        &format!("{} aria-current=\"page\">compare with the version after", link(&earlier, later)),
        &way,
    ] {
        assert!(old.contains(part.as_str()), "{part} in {old}");
    }
    let new = scenery.page(&format!("{here}&version={later}&with={earlier}")).await;
    assert!(new.contains(&way) && new.contains("compare with the version before"), "{new}");
}

#[tokio::test]
async fn the_text_of_a_version_is_found_in_an_earlier_session() {
    let scenery = Scenery::new().await;
    let (earlier, later) = add_version(&scenery).await;
    let comparison =
        format!("/catalogue/agent/copywriter?part=versions&version={earlier}&with={later}");
    let cannot = "no call of one of the versions has a stored context";
    let page = scenery.page(&comparison).await;
    assert!(page.contains(cannot) && page.contains("cannot be shown"), "{page}");
    store_contexts(&scenery, &earlier, "You write long parts.").await;
    store_contexts(&scenery, later, "You write short parts.").await;
    // The last session of the earlier version has no context.
    let settings = TurnSettings { at: noon() + TimeDelta::minutes(2), ..TurnSettings::default() };
    let task = scenery.add_apart("Part 11: The fog.").await;
    let (_, begun) = scenery.world.begin(&task, scenery.world.lease(), settings).await;
    scenery.world.commit(&begun, "The fog.", settings).await.unwrap();
    let listed = scenery.get_json("/v1/agents/copywriter/versions").await;
    let version = &listed["items"][0];
    assert_eq!(version["prompt_hash"], earlier, "{listed}");
    assert_ne!(version["last_session_id"], scenery.session_id.to_string(), "{listed}");
    assert_eq!(version["stored_session_id"], scenery.session_id.to_string(), "{listed}");
    let page = scenery.page(&comparison).await;
    assert!(!page.contains(cannot), "{page}");
}

/// Stores contexts of the ended turns of a version, with its prompt and a skill.
pub async fn store_contexts(scenery: &Scenery, version: &str, prompt: &str) {
    let mut parts = Vec::new();
    for (kind, text) in [("agent_prompt", prompt), ("skill", "Name each boat.")] {
        let store = "insert into dalsegno.context_texts (sha256, kind, content) values (sha256(convert_to($2, 'UTF8')), $1, $2)
             on conflict (sha256) do update set kind = excluded.kind returning encode(sha256, 'hex')";
        let store = sqlx::query_scalar::<_, String>(store).bind(kind).bind(text);
        let sha256 = store.fetch_one(&scenery.app.pool).await.unwrap();
        parts.push(json!({ "kind": kind, "sha256": sha256, "tokens": 9, "sent": true, "why": "every_call" }));
    }
    let store = "insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, sha256, manifest)
         select t.session_id, t.number, 0, '2026-11-20 12:00+00', 9, decode(repeat('00', 32), 'hex'), $2
           from dalsegno.turns as t join dalsegno.sessions as s on s.id = t.session_id
          where t.ended_at is not null and s.prompt_hash = $1";
    let store = sqlx::query(store).bind(version).bind(json!({ "parts": parts }));
    store.execute(&scenery.app.pool).await.unwrap();
}

#[tokio::test]
async fn a_version_is_the_prompt_alone_without_skills() {
    let scenery = Scenery::new().await;
    let (earlier, later) = add_version(&scenery).await;
    store_contexts(&scenery, &earlier, "You write long parts.").await;
    store_contexts(&scenery, later, "You write short parts.").await;
    let here = "/catalogue/agent/copywriter?part=versions";
    let page = scenery.page(&format!("{here}&version={later}&with={earlier}")).await;
    for part in ["You write short parts.", "<del>long</del>", "<ins>short</ins>"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("Name each boat.") && page.contains("show=request#request"), "{page}");
    let show = |version: &str| format!("/v1/agents/copywriter/versions/{version}");
    let text = scenery.get_json(&show("1111")).await;
    let expected =
        json!({ "prompt_hash": later, "is_current": false, "text": "You write short parts." });
    assert_eq!(text, expected);
    let file = scenery.get_json(&show("file")).await;
    assert!(file["is_current"] == true && file["prompt_hash"] != earlier, "{file}");
    let written = scenery.get_json("/v1/files/agent/copywriter").await;
    let written = written["text"].as_str().unwrap();
    assert!(written.contains(file["text"].as_str().unwrap().trim()), "{file}");
    let unknown = send(scenery.app.address, "GET", &show("2222"), &[], "").await;
    assert!(unknown.problem(404, "unknown_version").contains("dalsegno agent versions copywriter"));
    // Both versions begin so.
    let same = "update dalsegno.sessions set prompt_hash = '1' || substr(prompt_hash, 2) where prompt_hash = $1";
    sqlx::query(same).bind(&earlier).execute(&scenery.app.pool).await.unwrap();
    let reply = send(scenery.app.address, "GET", &show("1"), &[], "").await;
    reply.problem(422, "ambiguous_id");
}

#[tokio::test]
async fn the_versions_of_a_prompt_do_not_look_into_each_session() {
    let scenery = Scenery::new().await;
    let mut conn = scenery.app.pool.acquire().await.unwrap();
    let fill = [
        "insert into dalsegno.sessions (id, campaign_id, agent_type, instance, provider, model, prompt_hash, fence_seed, expires_at, turn_count, used_at)
         select gen_random_uuid(), campaign_id, agent_type, 'copy_' || n, provider, model, prompt_hash, fence_seed, expires_at, 1, used_at - n * interval '1 minute'
           from dalsegno.sessions, generate_series(1, 300) as n where id = $1",
        // One goes on with the numbers of another session, which is gone.
        "update dalsegno.sessions set predecessor_id = $1, turn_count = 12 where instance = 'copy_1'",
        "insert into dalsegno.turns (session_id, task_id, number, attempt, job_id, lease, started_at, ended_at, state)
         select s.id, t.task_id, n, t.attempt, t.job_id, t.lease, t.started_at, t.ended_at, t.state
           from dalsegno.sessions as s, dalsegno.turns as t, generate_series(11, 12) as n
          where s.instance = 'copy_1' and t.session_id = $1 and t.number = 1",
        // The last used session has no context, the next one has two.
        "insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, sha256, manifest)
         select s.id, n, 0, s.used_at, 9, decode(repeat('00', 32), 'hex'), '{\"parts\": []}'
           from dalsegno.sessions as s, generate_series(11, 12) as n where s.instance = 'copy_1' and s.predecessor_id = $1",
    ];
    for sql in fill {
        sqlx::query(sql).bind(scenery.session_id).execute(&mut *conn).await.unwrap();
    }
    let own = "select turn_count from dalsegno.sessions where id = $1";
    let own = sqlx::query_scalar::<_, i32>(own).bind(scenery.session_id);
    let own = own.fetch_one(&mut *conn).await.unwrap();
    let listed = scenery.get_json("/v1/agents/copywriter/versions").await;
    let [version] = listed["items"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&version["sessions"], &version["turns"]), (&json!(301), &json!(299 + 2 + own)));
    assert_eq!(version["last_session_id"], scenery.session_id.to_string(), "{version}");
    let stored = "select id from dalsegno.sessions where instance = 'copy_1'";
    let stored: uuid::Uuid = sqlx::query_scalar(stored).fetch_one(&mut *conn).await.unwrap();
    assert_eq!(version["stored_session_id"], stored.to_string(), "{version}");
    assert_eq!(version["stored_turn"], 12, "{version}");
    sqlx::raw_sql("analyze dalsegno.sessions; analyze dalsegno.turns; analyze dalsegno.manifests")
        .execute(&mut *conn)
        .await
        .unwrap();
    let prepare =
        concat!("prepare versions as ", include_str!("../../../src/domain/prompt_versions.sql"));
    sqlx::raw_sql(prepare).execute(&mut *conn).await.unwrap();
    let explain = "explain (analyze, format json) execute versions ('copywriter', '{}', 100)";
    let plan = sqlx::raw_sql(explain).fetch_one(&mut *conn).await.unwrap();
    let plan: Value = plan.get(0);
    let plan = &plan[0]["Plan"];
    assert_eq!((loops_of(plan, "manifests"), loops_of(plan, "turns")), (2, 1), "{plan}");
}

/// Returns how often a plan has looked into a table.
fn loops_of(node: &Value, table: &str) -> i64 {
    let own = match node["Relation Name"] == table {
        true => node["Actual Loops"].as_i64().unwrap(),
        false => 0,
    };
    let inputs = node["Plans"].as_array().into_iter().flatten();
    own + inputs.map(|input| loops_of(input, table)).sum::<i64>()
}

#[tokio::test]
async fn without_a_campaign_the_prompt_names_a_command() {
    let app = TestApp::start_on(TestDatabase::migrated().await).await;
    let shown = page(&app, "/catalogue/agent/copywriter?part=prompt").await;
    assert!(shown.contains("dalsegno campaign create"), "{shown}");
}

#[tokio::test]
async fn an_agent_is_paused_everywhere_with_the_scope_only() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let path = "/catalogue/agent/copywriter";
    let pause = "/do/pause_agent_everywhere";
    let (_, secret) = key(app, "ben", "read").await;
    let reader = sign_in(app, &secret).await;
    assert!(!open(app, path, &reader).await.body.contains(pause));
    let token = form_token(&open(app, "/", &reader).await.body);
    let fields = [("form_token", token.as_str()), ("name", "copywriter"), ("then", path)];
    assert_eq!(post(app, pause, &reader, &fields, &[]).await.status, 403);
    let (_, secret) = key(app, "ann", "operate").await;
    let operator = sign_in(app, &secret).await;
    let page = open(app, path, &operator).await.body;
    assert!(page.contains(pause), "{page}");
    let token = form_token(&page);
    let mut fields = vec![("form_token", token.as_str()), ("name", "copywriter"), ("then", path)];
    fields.push(("reason", "the notes are late"));
    assert_eq!(post(app, pause, &operator, &fields, &[]).await.status, 303);
    fields.pop();
    let page = open(app, path, &operator).await.body;
    assert!(
        page.contains("in all campaigns") && page.contains("/do/resume_agent_everywhere"),
        "{page}"
    );
    assert!(!page.contains(pause) && page.contains(">the notes are late</bdi>. Paused since"));
    assert!(page.contains(">the API key ann</bdi>"), "{page}");
    let list = open(app, "/catalogue", &operator).await.body;
    let row = list.split("<tr").find(|row| row.contains(&format!("href=\"{path}\""))).unwrap();
    assert!(row.contains("paused") && !row.contains("in order"), "{row}");
    assert!(row.contains(">the notes are late</bdi>. Paused since"), "{row}");
    assert!(row.contains(">the API key ann</bdi>"), "{row}");
    let tabs = page.find("aria-label=\"Parts of the agent\"").unwrap();
    assert!(page.find("the notes are late").unwrap() < tabs, "above the file: {page}");
    assert_eq!(post(app, "/do/resume_agent_everywhere", &operator, &fields, &[]).await.status, 303);
}

#[tokio::test]
async fn files_fit_into_each_width() {
    let Some(browser) = Browser::start().await else { return };
    let folder = folder();
    let scenery = Scenery::with(&[("agents.folder", folder.path().to_str().unwrap())]).await;
    for (name, path) in [
        ("files", "/catalogue"),
        ("files-broken", "/catalogue/agent/reviewer"),
        ("files-agent", "/catalogue/agent/copywriter"),
        ("files-prompt", "/catalogue/agent/copywriter?part=prompt"),
        ("files-versions", "/catalogue/agent/copywriter?part=versions"),
        ("files-flow", "/catalogue/flow/article-series"),
    ] {
        browser.open(&scenery.url(path)).await;
        browser.save_in_all_looks(name).await;
    }
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}
