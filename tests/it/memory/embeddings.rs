//! Search by embeddings, on a Postgres with pgvector.

use std::sync::Arc;

use dalsegno::{
    clock::ManualClock,
    config::Config,
    db::{self, embedded},
    doctor::{self, Finding, Status},
    domain::{
        agents::Library,
        amount::Limit,
        audit::Actor,
        erasures, facts,
        memory::{self, Kind, New, Who},
        search::Question,
    },
    jobs::{Pool, Services},
    settings::{Environment, Flags},
    shutdown::Shutdown,
    telemetry,
    tools::{self, Caller, Operator, Settings, Tools},
    traces::Traces,
    worker,
};
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, PgPool, postgres::PgPoolOptions};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{OPERATOR, agent, new, publish_with, revoke};
use crate::{
    app::{SOON, eventually, get, noon},
    clients::packages,
    cluster::scratch_folder,
    conversations::world::World,
    embedded::support::Place,
    facts::{ANN, state},
    providers::fake_ollama::{
        FakeOllama,
        meaning::{BREAKING, Embeds, REFUSED},
    },
    service::{Service, dalsegno},
};

const MODEL: &str = "all-minilm";

/// A campaign, a model that knows some words, and a server that compares vectors.
struct Ground {
    world: World,
    ollama: FakeOllama,
    tools: Tools,
    config: Config,
    postgres: embedded::Embedded,
    _place: Place,
}

/// Creates embeddings until it is stopped.
struct Worker {
    shutdown: Shutdown,
    work: JoinHandle<Result<(), worker::Error>>,
}

impl Ground {
    async fn new() -> Self {
        let ground = Self::without_extension().await;
        ground.execute("create extension vector").await;
        ground
    }

    async fn without_extension() -> Self {
        let (place, postgres, pool) = server().await;
        let ollama = FakeOllama::start().await;
        let config = settings_of(&ollama, MODEL);
        let world = World::over(pool.clone(), Limit::default()).await;
        let tools = tools_of(&config, &pool);
        Self { world, ollama, tools, config, postgres, _place: place }
    }

    fn pool(&self) -> &PgPool {
        &self.world.pool
    }

    async fn execute(&self, sql: &'static str) {
        sqlx::query(sql).execute(self.pool()).await.unwrap();
    }

    async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.pool()).await.unwrap()
    }

    async fn publish(&self, new: &New<'_>, by: &Who<'_>) {
        publish_with(&self.world, new, by, &self.config.memory).await.unwrap();
    }

    async fn put(&self, name: &str, body: &str) {
        self.publish(&new(Kind::Record, name, body), &OPERATOR).await;
    }

    fn work(&self) -> Worker {
        Worker::start(&self.config, self.pool())
    }

    /// Waits until this many items and facts have vectors, and no job for them is left.
    async fn made(&self, items: i64, facts: i64) {
        eventually("vectors are made", async || {
            let made = [
                self.count("select count(*) from dalsegno.memory_embeddings").await,
                self.count("select count(*) from dalsegno.fact_embeddings").await,
                self.count("select count(*) from dalsegno.jobs where kind = 'make_embeddings'")
                    .await,
            ];
            (made == [items, facts, 0]).then_some(())
        })
        .await;
    }

    /// Returns the result of the tool for an operator.
    async fn recall(&self, words: &str) -> Value {
        let actor = Actor::cli("ann", "host");
        let caller = Caller::Operator(Operator {
            campaign_id: self.world.campaign.id,
            actor,
            is_bound: false,
        });
        let answer = tools::call(&self.tools, &caller, "recall", json!({ "words": words })).await;
        assert!(!answer.is_error, "{}", answer.text);
        serde_json::from_str(&answer.text).unwrap()
    }

    async fn found(&self, words: &str) -> Vec<String> {
        let said = self.recall(words).await;
        let names = said["found"].as_array().unwrap().iter();
        names.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the names that a reader finds, with the embedding of the query.
    async fn names(&self, world: &World, words: &str, who: &Who<'_>) -> Vec<String> {
        let meaning = self.tools.settings.meanings.of_question(words).await;
        assert!(meaning.is_some(), "the model says what it means");
        let question = Question { words, limit: 10, meaning: meaning.as_ref() };
        let mut conn = self.pool().acquire().await.unwrap();
        let (id, config) = (world.campaign.id, &self.config.memory);
        let hits =
            memory::search(&mut conn, (id, None), question, who, config, noon()).await.unwrap();
        hits.into_iter().map(|hit| hit.item.name).collect()
    }

    fn url(&self) -> String {
        self.postgres.connect_options().to_url_lossy().to_string()
    }

    /// Returns the doctor's finding about it.
    async fn diagnosis(&self) -> Finding {
        let environment = Environment::from([("DATABASE_URL", self.url().as_str())]);
        let base_url = format!("http://{}", self.ollama.addr);
        let set = [("ollama.base_url", base_url.as_str()), ("memory.embeddings_model", MODEL)];
        let set = set.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let (flags, clock) = (Flags { file: None, set }, ManualClock::at(noon()));
        let never = CancellationToken::new();
        let findings = doctor::examine(&environment, &flags, &clock, &never).await;
        findings.into_iter().find(|finding| finding.check == "embeddings").unwrap()
    }

    async fn set_user(&self, user: &str) {
        let mut tx = self.pool().begin().await.unwrap();
        facts::set_user(&mut tx, self.world.campaign.id, user, noon()).await.unwrap();
        tx.commit().await.unwrap();
    }
}

impl Worker {
    fn start(config: &Config, pool: &PgPool) -> Self {
        let clock = Arc::new(ManualClock::at(noon()));
        let program = env!("CARGO_BIN_EXE_dalsegno").into();
        let services = Services::build(config, clock, program, Traces::default()).unwrap();
        let (shutdown, pool, config) = (Shutdown::new(), pool.clone(), config.clone());
        let stop = shutdown.clone();
        let work = tokio::spawn(async move {
            worker::work(&config, services, &pool.into(), stop, Pool::Upkeep).await
        });
        Self { shutdown, work }
    }

    async fn stop(self) {
        self.shutdown.soft.cancel();
        tokio::time::timeout(SOON, self.work).await.unwrap().unwrap().unwrap();
    }
}

/// Starts a server with the schema and without the extension.
pub async fn server() -> (Place, embedded::Embedded, PgPool) {
    let place = Place::new();
    let settings = embedded::Config {
        bin_dir: Some(packages::pgvector()),
        purpose: embedded::Purpose::Throwaway,
        ..place.config.clone()
    };
    let postgres = embedded::start(&settings).await.unwrap();
    let pool = PgPoolOptions::new().max_connections(10);
    let pool = pool.connect_with(postgres.connect_options()).await.unwrap();
    db::migrate(&pool).await.unwrap();
    (place, postgres, pool)
}

fn settings_of(ollama: &FakeOllama, model: &str) -> Config {
    let base_url = format!("http://{}", ollama.addr);
    let set = [
        ("ollama.base_url", base_url.as_str()),
        ("memory.embeddings_model", model),
        ("memory.embeddings_timeout_ms", "5000"),
        ("queue.poll_busy_ms", "50"),
        ("queue.poll_idle_ms", "100"),
        ("scheduler.enabled", "false"),
        ("shutdown.drain_timeout_secs", "0"),
    ];
    configured(&set)
}

fn configured(set: &[(&str, &str)]) -> Config {
    let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Config::load(&Environment::default(), &Flags { file: None, set }).unwrap()
}

fn tools_of(config: &Config, pool: &PgPool) -> Tools {
    let library = Arc::new(Library::open(&config.agents).unwrap());
    let settings = Settings::new(config, Arc::new(ManualClock::at(noon())), library);
    Tools { pool: pool.clone(), settings: Arc::new(settings) }
}

#[tokio::test]
async fn what_says_the_same_in_other_words_is_found_beside_what_has_the_words() {
    let ground = Ground::new().await;
    ground.put("timetable", "The ship leaves at nine.").await;
    ground.put("fleet", "Five boats, and a ferry.").await;
    ground.put("tone", "Write short sentences.").await;
    ground.set_user(ANN).await;
    state(ground.pool(), ANN, ("Food", "Vegetarian since 2019.")).await.unwrap();
    state(ground.pool(), ANN, ("City", "Lives in Bergen.")).await.unwrap();
    // Requested three times, and one job is enough.
    let n_jobs = "select count(*) from dalsegno.jobs where kind = 'make_embeddings'";
    assert_eq!(ground.count(n_jobs).await, 1);
    assert_eq!(ground.found("vessel").await, Vec::<String>::new());
    let worker = ground.work();
    ground.made(3, 2).await;
    assert_eq!(ground.found("vessel").await, ["fleet", "timetable"]);
    // An item with the word ranks first, even if another is nearer in meaning.
    assert_eq!(ground.found("ship").await[0], "timetable");
    assert_eq!(ground.found("ship").await.len(), 2);
    // An exact query returns exact matches only.
    assert_eq!(ground.found("\"ship\"").await, ["timetable"]);
    assert_eq!(ground.found("ship -ferry").await, ["timetable"]);
    assert_eq!(ground.found("weather").await, Vec::<String>::new());
    let said = ground.recall("what may be on the menu?").await;
    assert_eq!(said["facts"][0]["text"], "Vegetarian since 2019.", "{said}");
    assert_eq!(said["facts"].as_array().unwrap().len(), 1, "{said}");
    let said = ground.recall("vessel").await;
    assert_eq!(said["found"][0]["excerpt"], "Five boats, and a ferry.", "{said}");
    worker.stop().await;
}

#[tokio::test]
async fn nobody_finds_by_meaning_what_they_may_not_read_or_what_holds_no_more() {
    let ground = Ground::new().await;
    let other = World::over(ground.pool().clone(), Limit::default()).await;
    let journal = |name| new(Kind::Journal, name, "The ship is late.");
    ground.publish(&journal("own"), &agent("writer")).await;
    ground.publish(&journal("foreign"), &agent("curator")).await;
    ground.put("revoked", "A ship.").await;
    ground.put("replaced", "A ship.").await;
    let expires_at = Some(noon() + chrono::TimeDelta::seconds(1));
    ground.publish(&New { expires_at, ..new(Kind::Record, "expired", "A ship.") }, &OPERATOR).await;
    publish_with(
        &other,
        &new(Kind::Record, "elsewhere", "A ship."),
        &OPERATOR,
        &ground.config.memory,
    )
    .await
    .unwrap();
    for (user, text) in [(ANN, "Has a ship."), ("ben", "Has a boat.")] {
        state(ground.pool(), user, ("Owns", text)).await.unwrap();
    }
    let worker = ground.work();
    ground.made(6, 2).await;
    worker.stop().await;
    revoke(&ground.world, (Kind::Record, None, "revoked"), &OPERATOR).await.unwrap();
    ground.put("replaced", "About something else.").await;
    ground
        .execute(
            "update dalsegno.memory_items set expires_at = '2026-01-01' where name = 'expired'",
        )
        .await;
    let asks = async |world, who: Who<'static>| ground.names(world, "vessel", &who).await;
    assert_eq!(asks(&ground.world, agent("writer")).await, ["own"]);
    assert_eq!(asks(&ground.world, agent("curator")).await, ["foreign"]);
    assert_eq!(asks(&ground.world, agent("copywriter")).await, Vec::<String>::new());
    let mut all = asks(&ground.world, agent("planner")).await;
    all.sort();
    assert_eq!(all, ["foreign", "own"]);
    assert_eq!(asks(&other, agent("writer")).await, ["elsewhere"]);
    ground.set_user(ANN).await;
    let said = ground.recall("vessel").await;
    assert_eq!(said["facts"].as_array().unwrap().len(), 1, "{said}");
    assert_eq!(said["facts"][0]["about"], ANN);
    // Ended facts are not compared, either.
    state(ground.pool(), ANN, ("Owns", "Nothing.")).await.unwrap();
    let said = ground.recall("vessel").await;
    assert!(said.get("facts").is_none(), "{said}");
}

#[tokio::test]
async fn words_alone_answer_where_the_model_or_the_extension_is_missing() {
    let ground = Ground::without_extension().await;
    let metrics = telemetry::init(&ground.config.log).unwrap().metrics;
    let counted = |result: &str| {
        let line = format!("dalsegno_semantic_searches_total{{outcome=\"{result}\"}} ");
        let text = metrics.render();
        let n = text.lines().find_map(|it| it.strip_prefix(&line).map(str::to_owned));
        n.map_or(0, |n| n.parse::<u64>().unwrap())
    };
    ground.put("timetable", "The ship leaves at nine.").await;
    let worker = ground.work();
    ground.made(1, 0).await;
    worker.stop().await;
    let words_alone = async |ground: &Ground| {
        assert_eq!(ground.found("ship").await, ["timetable"]);
        assert_eq!(ground.found("vessel").await, Vec::<String>::new());
    };
    words_alone(&ground).await;
    assert!(counted("no_extension") >= 2);
    let said = ground.diagnosis().await;
    assert!(said.status == Status::Warn && said.mend.contains("create extension"), "{said:?}");
    ground.execute("create extension vector").await;
    assert_eq!(ground.diagnosis().await.status, Status::Ok);
    assert_eq!(ground.found("vessel").await, ["timetable"]);
    let hasty = configured(&[
        ("ollama.base_url", &format!("http://{}", ground.ollama.addr)),
        ("memory.embeddings_model", MODEL),
        ("memory.embeddings_timeout_ms", "100"),
    ]);
    let ground = Ground { tools: tools_of(&hasty, ground.pool()), ..ground };
    for fault in [Embeds::Missing, Embeds::Hangs] {
        *ground.ollama.state.embeds.lock().unwrap() = fault;
        let before = counted("no_model");
        words_alone(&ground).await;
        assert!(counted("no_model") >= before + 2, "{fault:?}");
    }
    *ground.ollama.state.embeds.lock().unwrap() = Embeds::Missing;
    let said = ground.diagnosis().await;
    assert!(said.status == Status::Warn && said.mend.contains("ollama pull"), "{said:?}");
    ground.postgres.stop().await.unwrap();
}

#[tokio::test]
async fn what_was_there_before_gets_its_vector_and_vectors_go_with_what_they_are_of() {
    let ground = Ground::new().await;
    let without = configured(&[]).memory;
    for (name, text) in
        [("before", "A ship."), ("odd", &format!("A {REFUSED} ship.")), ("old", "A ferry.")]
    {
        publish_with(&ground.world, &new(Kind::Record, name, text), &OPERATOR, &without)
            .await
            .unwrap();
    }
    for user in [ANN, "ben"] {
        state(ground.pool(), user, ("Owns", "A boat.")).await.unwrap();
    }
    let n_jobs = "select count(*) from dalsegno.jobs where kind = 'make_embeddings'";
    assert_eq!(ground.count(n_jobs).await, 0);
    let worker = ground.work();
    ground.made(3, 2).await;
    // A text that the model rejects does not affect others, and is found by its words.
    let mut found = ground.found("vessel").await;
    found.sort();
    assert_eq!(found, ["before", "old"]);
    assert_eq!(ground.found(REFUSED).await, ["odd"]);
    // The other model creates all vectors again, and is not compared with those of the first.
    worker.stop().await;
    let other = settings_of(&ground.ollama, "bge-m3");
    let asks_other = Tools { pool: ground.pool().clone(), ..tools_of(&other, ground.pool()) };
    let ground = Ground { tools: asks_other, config: other, ..ground };
    assert_eq!(ground.found("vessel").await, Vec::<String>::new());
    let worker = ground.work();
    eventually("they are made anew", async || {
        let old = "select count(*) from dalsegno.memory_embeddings where model <> 'bge-m3'";
        (ground.count(old).await == 0).then_some(())
    })
    .await;
    ground.made(3, 2).await;
    assert_eq!(ground.found("vessel").await.len(), 2);
    let mut tx = ground.pool().begin().await.unwrap();
    facts::forget(&mut tx, ANN, noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(ground.count("select count(*) from dalsegno.fact_embeddings").await, 1);
    let mut tx = ground.pool().begin().await.unwrap();
    erasures::request(&mut tx, ground.world.campaign.id, "asked for", noon()).await.unwrap();
    tx.commit().await.unwrap();
    eventually("the campaign is erased", async || {
        let left = ground.count("select count(*) from dalsegno.memory_embeddings").await;
        (left == 0).then_some(())
    })
    .await;
    worker.stop().await;
}

#[tokio::test]
async fn texts_that_the_model_does_not_take_keep_no_other_from_its_vector() {
    let ground = Ground::new().await;
    for name in ["cursed", "jinxed"] {
        ground.put(name, &format!("An {BREAKING} ship.")).await;
    }
    ground.put("odd", &format!("A {REFUSED} ship.")).await;
    for name in ["one", "two", "three"] {
        ground.put(name, "A ship.").await;
    }
    state(ground.pool(), ANN, ("Owns", "A boat.")).await.unwrap();
    state(ground.pool(), ANN, ("Dreads", &format!("An {BREAKING} ferry."))).await.unwrap();
    let worker = ground.work();
    eventually("it waits for the next try", async || {
        let waits = "select count(*) from dalsegno.jobs where kind = 'make_embeddings' and state = 'scheduled'";
        (ground.count(waits).await == 1).then_some(())
    })
    .await;
    let mut found = ground.found("vessel").await;
    found.sort();
    assert_eq!(found, ["one", "three", "two"], "at the first attempt");
    let n_made = "select (select count(*) from dalsegno.memory_embeddings) + (select count(*) from dalsegno.fact_embeddings)";
    assert_eq!(ground.count(n_made).await, 5, "and the refused one is done with");
    eventually("the others are given up", async || {
        ground.execute("update dalsegno.jobs set run_at = now() where state = 'scheduled'").await;
        (ground.count(n_made).await == 8).then_some(())
    })
    .await;
    ground.made(6, 2).await;
    worker.stop().await;
    assert_eq!(ground.found(BREAKING).await.len(), 2, "by their words");
    let empty = "select (select count(*) from dalsegno.memory_embeddings where vector = '{}')
                      + (select count(*) from dalsegno.fact_embeddings where vector = '{}')";
    assert_eq!(ground.count(empty).await, 4);
}

#[tokio::test]
async fn a_server_that_breaks_at_every_text_costs_none_its_vector() {
    let ground = Ground::new().await;
    for name in ["one", "two", "three"] {
        ground.put(name, "A ship.").await;
    }
    *ground.ollama.state.embeds.lock().unwrap() = Embeds::Breaks;
    let worker = ground.work();
    eventually("it waits for the next try", async || {
        let waits = "select count(*) from dalsegno.jobs where kind = 'make_embeddings' and state = 'scheduled'";
        (ground.count(waits).await == 1).then_some(())
    })
    .await;
    assert_eq!(ground.count("select count(*) from dalsegno.memory_embeddings").await, 0);
    // Three texts, then one, then another one.
    assert_eq!(ground.ollama.n_requests("POST /api/embed"), 3);
    // Later writers need no other job: the waiting one will find their items.
    ground.put("fleet", "Five boats.").await;
    let n_jobs = "select count(*) from dalsegno.jobs where kind = 'make_embeddings'";
    assert_eq!(ground.count(n_jobs).await, 1);
    *ground.ollama.state.embeds.lock().unwrap() = Embeds::Well;
    ground.execute("update dalsegno.jobs set run_at = now()").await;
    ground.made(4, 0).await;
    worker.stop().await;
    assert_eq!(ground.found("vessel").await.len(), 4);
}

#[tokio::test]
async fn a_server_that_is_slow_is_asked_for_less_at_once() {
    let mut ground = Ground::new().await;
    ground.config.ollama.first_byte_timeout_secs = 2;
    for n in 0..60 {
        ground.put(&format!("ship-{n}"), "A ship.").await;
    }
    *ground.ollama.state.embeds.lock().unwrap() = Embeds::Slow(16);
    let worker = ground.work();
    ground.made(60, 0).await;
    worker.stop().await;
    let asked = ground.ollama.state.embedded.lock().unwrap();
    let sizes: Vec<_> = asked.iter().map(|body| body["input"].as_array().unwrap().len()).collect();
    // After the timeout of 32 texts, a request with one text shows that the server does not hang. Later requests have
    // half the size.
    assert_eq!(sizes, [32, 1, 16, 16, 16, 12]);
}

#[tokio::test]
async fn a_model_that_takes_longer_to_load_than_a_question_waits_is_loaded_all_the_same() {
    let ground = Ground::new().await;
    let hasty = configured(&[
        ("ollama.base_url", &format!("http://{}", ground.ollama.addr)),
        ("memory.embeddings_model", MODEL),
        ("memory.embeddings_timeout_ms", "500"),
    ]);
    *ground.ollama.state.embeds.lock().unwrap() = Embeds::Cold;
    let meanings = tools_of(&hasty, ground.pool()).settings;
    for _ in 0..3 {
        assert_eq!(meanings.meanings.of_question("vessel").await, None);
    }
    // All three callers have disconnected, and one request is left.
    ground.ollama.gone(3).await;
    assert_eq!(ground.ollama.n_requests("POST /api/embed"), 4);
    ground.ollama.state.load.notify_one();
    eventually("it is loaded", async || meanings.meanings.of_question("vessel").await).await;
}

#[tokio::test]
async fn the_api_and_the_command_line_find_by_meaning_too() {
    let (ground, folder) = (Ground::new().await, scratch_folder());
    let (url, base_url) = (ground.url(), format!("http://{}", ground.ollama.addr));
    let environment = [
        ("DATABASE_URL", url.as_str()),
        ("DALSEGNO_OLLAMA__BASE_URL", base_url.as_str()),
        ("DALSEGNO_MEMORY__EMBEDDINGS_MODEL", MODEL),
        ("DALSEGNO_MEMORY__EMBEDDINGS_TIMEOUT_MS", "5000"),
    ];
    let service = Service::start(folder.path(), &environment).await;
    let says = async |arguments: &[&str]| {
        let mut command = dalsegno(folder.path());
        command.args(arguments).arg("--json").envs(environment);
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let id = ground.world.campaign.id.to_string();
    says(&[
        "memory",
        "publish",
        "--campaign",
        &id,
        "record",
        "timetable",
        "--title",
        "When",
        "The ship.",
    ])
    .await;
    ground.made(1, 0).await;
    says(&["memory", "facts", "state", ANN, "Food", "Vegetarian since 2019."]).await;
    ground.made(1, 1).await;
    let found = says(&["memory", "search", "--campaign", &id, "vessel"]).await;
    assert!(found.contains("timetable"), "{found}");
    let found = says(&["memory", "facts", "search", ANN, "menu"]).await;
    assert!(found.contains("since 2019"), "{found}");
    for (path, wanted) in [
        (format!("/v1/campaigns/{id}/memory/search?q=vessel"), "timetable"),
        (format!("/v1/users/{ANN}/facts/search?q=menu"), "since 2019"),
    ] {
        let answer = get(service.address, &path).await.unwrap();
        assert!(answer.status == 200 && answer.body.contains(wanted), "{answer:?}");
    }
    drop(service);
}
