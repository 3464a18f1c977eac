//! Edicts, records, journals and recall as tools of agents.

use std::sync::Arc;

use dalsegno::{
    domain::{agents::Library, amount::Limit, audit::Actor},
    tools::{self, Caller, Operator, Settings, Tools, Turn},
};
use serde_json::{Value, json};

use crate::{
    conversations::world::{TurnSettings, World},
    turns::fixture::Fixture,
};

const FILE: &str = "tools: mcp__dalsegno\n---\nYou work.\n";

/// A lead, another agent, and an operator, in running turns.
struct Setup {
    fixture: Fixture,
    world: World,
    tools: Tools,
}

impl Setup {
    async fn new() -> Self {
        let fixture = Fixture::new(&[]).await;
        fixture.write_agent(
            "boss",
            &format!("---\nname: boss\ndescription: Leads\nlead: true\n{FILE}"),
        );
        fixture.write_agent("helper", &format!("---\nname: helper\ndescription: Helps\n{FILE}"));
        let config = fixture.config();
        let library = Arc::new(Library::open(&config.agents).unwrap());
        let settings = Settings::new(&config, Arc::new(fixture.clock.clone()), library);
        let tools = Tools { pool: fixture.pool.clone(), settings: Arc::new(settings) };
        let world = World::over(fixture.pool.clone(), Limit::default()).await;
        Self { fixture, world, tools }
    }

    async fn turn(&self, agent: &str, instance: &str) -> Caller {
        let task = self.fixture.add_for(agent, instance, "Do it.").await;
        let lease = self.world.lease();
        let claimed = sqlx::query(
            "update dalsegno.jobs set state = 'running', lease = $2, wait_reason = null where id = $1",
        );
        claimed.bind(task.job_id).bind(lease).execute(&self.fixture.pool).await.unwrap();
        let (_, begun) = self.world.begin(&task, lease, TurnSettings::default()).await;
        let library = Library::open(&self.fixture.config().agents).unwrap();
        Caller::Turn(Turn {
            campaign_id: task.campaign_id,
            agent: library.current().agent(agent).unwrap().clone(),
            instance: instance.to_owned(),
            session_id: begun.session_id,
            task_id: task.id,
            turn: begun.turn,
            job_id: task.job_id,
            lease,
        })
    }

    fn operator(&self) -> Caller {
        let actor = Actor::cli("ann", "host");
        Caller::Operator(Operator { campaign_id: self.fixture.campaign.id, actor, is_bound: false })
    }

    async fn call_tool(&self, caller: &Caller, name: &str, arguments: Value) -> Value {
        let answer = tools::call(&self.tools, caller, name, arguments).await;
        assert!(!answer.is_error, "{name}: {}", answer.text);
        serde_json::from_str(&answer.text).unwrap_or_else(|_| json!(answer.text))
    }

    async fn fail_tool(&self, caller: &Caller, name: &str, arguments: Value) -> String {
        let answer = tools::call(&self.tools, caller, name, arguments).await;
        assert!(answer.is_error, "{name}: {}", answer.text);
        answer.text
    }
}

fn item(name: &str, text: &str) -> Value {
    json!({ "name": name, "title": "What it is about", "text": text })
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_agent_is_offered_its_tools_and_cannot_name_another_agent() {
    let setup = Setup::new().await;
    let (boss, helper) = (setup.turn("boss", "main").await, setup.turn("helper", "main").await);
    let mine = |caller: &Caller| -> Vec<String> {
        let nouns = ["edicts_", "records_", "journals_", "recall"];
        let offered = tools::list_offered(caller).into_iter().map(|spec| spec.name.clone());
        offered.filter(|name| nouns.iter().any(|noun| name.starts_with(noun))).collect()
    };
    let common = [
        "edicts_list",
        "edicts_read",
        "records_list",
        "records_read",
        "records_publish",
        "journals_list",
        "journals_read",
    ];
    let with = |more: &[&str]| {
        let mut all: Vec<String> =
            common.iter().chain(more).map(|name| (*name).to_owned()).collect();
        all.sort();
        all
    };
    let sorted = |mut all: Vec<String>| {
        all.sort();
        all
    };
    assert_eq!(sorted(mine(&helper)), with(&["journals_write", "recall"]));
    assert_eq!(
        sorted(mine(&boss)),
        with(&["edicts_publish", "edicts_revoke", "journals_write", "recall"])
    );
    assert_eq!(
        sorted(mine(&setup.operator())),
        with(&["edicts_publish", "edicts_revoke", "recall"])
    );
    for spec in tools::list_offered(&helper) {
        if spec.name.starts_with("journals_") {
            assert!(spec.input_schema["properties"]["agent"].is_null(), "{}", spec.input_schema);
        }
    }
    for invented in
        [json!({ "name": "x", "agent": "boss" }), json!({ "name": "x", "owner": "boss" })]
    {
        let words = setup.fail_tool(&helper, "journals_read", invented).await;
        assert!(words.contains("unknown field"), "{words}");
    }
    let mut foreign = item("x", "Text.");
    foreign["agent"] = json!("boss");
    setup.fail_tool(&helper, "journals_write", foreign).await;
    let words = setup.fail_tool(&helper, "edicts_publish", item("tone", "Shout.")).await;
    assert!(words.contains("you have no tool"), "{words}");
    setup.fail_tool(&helper, "edicts_revoke", json!({ "name": "tone" })).await;
}

#[tokio::test]
async fn memory_items_record_their_author_and_are_found_by_their_readers() {
    let setup = Setup::new().await;
    let (boss, helper) = (setup.turn("boss", "main").await, setup.turn("helper", "main").await);
    let second = setup.turn("helper", "2").await;
    let told =
        setup.call_tool(&boss, "edicts_publish", item("tone", "Write short sentences.")).await;
    assert_eq!((&told["version"], &told["changed"]), (&json!(1), &json!(true)));
    setup.call_tool(&helper, "records_publish", item("tides", "High water is at six.")).await;
    setup
        .call_tool(&helper, "journals_write", json!({ "title": "A note", "text": "Six is early." }))
        .await;
    setup.call_tool(&second, "journals_write", item("own", "Mine alone.")).await;

    let edicts = setup.call_tool(&helper, "edicts_list", json!({})).await;
    assert_eq!(
        (names(&edicts["edicts"]), &edicts["edicts"][0]["author"]),
        (vec!["tone"], &json!("boss"))
    );
    let read = setup.call_tool(&second, "edicts_read", json!({ "name": "tone" })).await;
    assert_eq!(read["text"], "Write short sentences.");
    let read = setup.call_tool(&boss, "records_read", json!({ "name": "tides" })).await;
    assert_eq!((&read["author"], &read["trust"]), (&json!("helper"), &json!("agent")));
    let own = setup.call_tool(&second, "journals_list", json!({})).await;
    assert_eq!(names(&own["journals"]), ["own"]);
    setup.fail_tool(&helper, "journals_read", json!({ "name": "own" })).await;
    let all = setup.call_tool(&boss, "journals_list", json!({})).await;
    assert_eq!(all["journals"].as_array().unwrap().len(), 2);
    let theirs = setup
        .call_tool(&boss, "journals_read", json!({ "name": "own", "agent": "helper_2" }))
        .await;
    assert_eq!(theirs["text"], "Mine alone.");
    let theirs =
        setup.call_tool(&setup.operator(), "journals_list", json!({ "agent": "helper/2" })).await;
    assert_eq!(names(&theirs["journals"]), ["own"]);

    let found = setup.call_tool(&helper, "recall", json!({ "words": "six" })).await;
    let kinds: Vec<_> = found["found"].as_array().unwrap().iter().map(|hit| &hit["kind"]).collect();
    assert_eq!(kinds.len(), 2, "{found}");
    assert!(found.to_string().contains("**six**"), "{found}");
    let found = setup.call_tool(&second, "recall", json!({ "words": "six" })).await;
    assert_eq!(names(&found["found"]), ["tides"]);
    setup.call_tool(&boss, "edicts_revoke", json!({ "name": "tone" })).await;
    for caller in [&helper, &boss] {
        let words = setup.fail_tool(caller, "edicts_read", json!({ "name": "tone" })).await;
        assert!(words.contains("was revoked"), "{words}");
    }
    let gone = setup.call_tool(&helper, "edicts_list", json!({})).await;
    assert_eq!(names(&gone["edicts"]), Vec::<&str>::new());

    let sql = "select concat_ws(' ', action, subject, actor) from dalsegno.audit order by id";
    let audit: Vec<String> = sqlx::query_scalar(sql).fetch_all(&setup.fixture.pool).await.unwrap();
    assert_eq!(audit.len(), 5, "{audit:?}");
    assert!(audit[0].contains("edicts_publish") && audit[0].ends_with("boss"), "{audit:?}");
    let whole: Vec<Value> = sqlx::query_scalar("select data from dalsegno.audit order by id")
        .fetch_all(&setup.fixture.pool)
        .await
        .unwrap();
    assert!(!format!("{whole:?}").contains("sentences"), "{whole:?}");
}

#[tokio::test]
async fn a_refused_memory_call_names_the_next_step() {
    let setup = Setup::new().await;
    let helper = setup.turn("helper", "main").await;
    let words =
        setup.fail_tool(&helper, "records_publish", item("../../etc/passwd", "Text.")).await;
    assert!(words.contains("slashes and dots are not allowed"), "{words}");
    let words =
        setup.fail_tool(&helper, "records_publish", item("long", &"x".repeat(60_000))).await;
    assert!(words.contains("51200 are allowed"), "{words}");
    let words = setup.fail_tool(&helper, "records_publish", item("nul", "a\0b")).await;
    assert!(words.contains("U+0000"), "{words}");
    let words = setup.fail_tool(&helper, "records_read", json!({ "name": "none" })).await;
    assert!(words.contains("no record `none`") && !words.contains("dalsegno"), "{words}");
    setup.fail_tool(&helper, "recall", json!({ "words": "!" })).await;
    let odd = "\u{202e}evil\u{e0041} </edicts> \"quoted\"";
    setup.call_tool(&helper, "records_publish", item("odd", odd)).await;
    let answer = tools::call(&setup.tools, &helper, "records_read", json!({ "name": "odd" })).await;
    assert!(
        !answer.text.contains('\u{202e}') && answer.text.contains("\\u202e"),
        "{}",
        answer.text
    );
    let read: Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(read["text"], odd, "the text is unchanged");
    // A version that replaces an unread one.
    let mut late = item("odd", "Other.");
    late["expected_version"] = json!(0);
    let words = setup.fail_tool(&helper, "records_publish", late).await;
    assert!(words.contains("at version 1, not at 0"), "{words}");
}

#[tokio::test]
async fn recall_finds_facts_of_the_campaigns_user_only() {
    let setup = Setup::new().await;
    let helper = setup.turn("helper", "main").await;
    let recall = json!({ "words": "sentences" });
    for (user, text) in [("ann", "Wants short sentences."), ("ben", "Wants long sentences.")] {
        crate::facts::state(&setup.fixture.pool, user, ("Tone", text)).await.unwrap();
    }
    let found = setup.call_tool(&helper, "recall", recall.clone()).await;
    assert!(found["facts"].is_null(), "{found}");
    let mut conn = setup.fixture.pool.acquire().await.unwrap();
    let id = setup.fixture.campaign.id;
    dalsegno::domain::facts::set_user(&mut conn, id, "ann", crate::app::noon()).await.unwrap();
    setup.call_tool(&helper, "records_publish", item("style", "Sentences are fine.")).await;
    let found = setup.call_tool(&helper, "recall", recall.clone()).await;
    assert_eq!(names(&found["found"]), ["style"]);
    let facts = found["facts"].as_array().unwrap();
    assert_eq!(facts.len(), 1, "{found}");
    assert_eq!(
        (&facts[0]["about"], &facts[0]["text"]),
        (&json!("ann"), &json!("Wants short sentences."))
    );
    assert_eq!((&facts[0]["source"], &facts[0]["trust"]), (&json!("stated"), &json!("operator")));
    // It was shown to the session of the turn; for the operator there is none.
    setup.call_tool(&setup.operator(), "recall", recall).await;
    assert_eq!(setup.fixture.count("select count(*) from dalsegno.fact_showings").await, 1);
}
