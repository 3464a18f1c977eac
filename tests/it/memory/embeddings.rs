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
        memory::{self, Kind, MemoryCaller, New},
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
    embedded::support::EmbeddedSetup,
    facts::{USER, state},
    providers::fake_ollama::{
        FakeOllama,
        meaning::{BREAKING, Embeds, REFUSED},
    },
    service::{Service, dalsegno},
};

const MODEL: &str = "all-minilm";

/// A campaign, a model that knows some words, and a server that compares vectors.
struct Fixture {
    world: World,
    ollama: FakeOllama,
    tools: Tools,
    config: Config,
    postgres: embedded::EmbeddedServer,
    _place: EmbeddedSetup,
}

/// Creates embeddings until it is stopped.
struct Worker {
    shutdown: Shutdown,
    work: JoinHandle<Result<(), worker::Error>>,
}

impl Fixture {
    async fn new() -> Self {
        let fixture = Self::without_extension().await;
        fixture.execute("create extension vector").await;
        fixture
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

    async fn publish(&self, new: &New<'_>, by: &MemoryCaller<'_>) {
        publish_with(&self.world, new, by, &self.config.memory).await.unwrap();
    }

    async fn put(&self, name: &str, body: &str) {
        self.publish(&new(Kind::Record, name, body), &OPERATOR).await;
    }

    fn start_worker(&self) -> Worker {
        Worker::start(&self.config, self.pool())
    }

    /// Waits until this many items and facts have vectors, and no job for them is left.
    async fn wait_for_embeddings(&self, items: i64, facts: i64) {
        eventually("embeddings are created", async || {
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

    async fn find_names(&self, words: &str) -> Vec<String> {
        let said = self.recall(words).await;
        let names = said["found"].as_array().unwrap().iter();
        names.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the names that a reader finds, with the embedding of the query.
    async fn names(&self, world: &World, words: &str, who: &MemoryCaller<'_>) -> Vec<String> {
        let meaning = self.tools.settings.meanings.of_question(words).await;
        assert!(meaning.is_some(), "the model answers with an embedding");
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
            worker::run_pool(&config, services, &pool.into(), stop, Pool::Upkeep).await
        });
        Self { shutdown, work }
    }

    async fn stop(self) {
        self.shutdown.soft.cancel();
        tokio::time::timeout(SOON, self.work).await.unwrap().unwrap().unwrap();
    }
}

/// Starts a server with the schema and without the extension.
pub async fn server() -> (EmbeddedSetup, embedded::EmbeddedServer, PgPool) {
    let place = EmbeddedSetup::new();
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
async fn semantic_matches_are_found_beside_full_text_matches() {
    let fixture = Fixture::new().await;
    fixture.put("timetable", "The ship leaves at nine.").await;
    fixture.put("fleet", "Five boats, and a ferry.").await;
    fixture.put("tone", "Write short sentences.").await;
    fixture.set_user(USER).await;
    state(fixture.pool(), USER, ("Food", "Vegetarian since 2019.")).await.unwrap();
    state(fixture.pool(), USER, ("City", "Lives in Bergen.")).await.unwrap();
    // Requested three times, and one job is enough.
    let n_jobs = "select count(*) from dalsegno.jobs where kind = 'make_embeddings'";
    assert_eq!(fixture.count(n_jobs).await, 1);
    assert_eq!(fixture.find_names("vessel").await, Vec::<String>::new());
    let worker = fixture.start_worker();
    fixture.wait_for_embeddings(3, 2).await;
    assert_eq!(fixture.find_names("vessel").await, ["fleet", "timetable"]);
    // An item with the word ranks first, even if another is nearer in meaning.
    assert_eq!(fixture.find_names("ship").await[0], "timetable");
    assert_eq!(fixture.find_names("ship").await.len(), 2);
    // An exact query returns exact matches only.
    assert_eq!(fixture.find_names("\"ship\"").await, ["timetable"]);
    assert_eq!(fixture.find_names("ship -ferry").await, ["timetable"]);
    assert_eq!(fixture.find_names("weather").await, Vec::<String>::new());
    let said = fixture.recall("what may be on the menu?").await;
    assert_eq!(said["facts"][0]["text"], "Vegetarian since 2019.", "{said}");
    assert_eq!(said["facts"].as_array().unwrap().len(), 1, "{said}");
    let said = fixture.recall("vessel").await;
    assert_eq!(said["found"][0]["excerpt"], "Five boats, and a ferry.", "{said}");
    worker.stop().await;
}

#[tokio::test]
async fn semantic_search_hides_unreadable_revoked_and_expired_items() {
    let fixture = Fixture::new().await;
    let other = World::over(fixture.pool().clone(), Limit::default()).await;
    let journal = |name| new(Kind::Journal, name, "The ship is late.");
    fixture.publish(&journal("own"), &agent("writer")).await;
    fixture.publish(&journal("foreign"), &agent("curator")).await;
    fixture.put("revoked", "A ship.").await;
    fixture.put("replaced", "A ship.").await;
    let expires_at = Some(noon() + chrono::TimeDelta::seconds(1));
    fixture
        .publish(&New { expires_at, ..new(Kind::Record, "expired", "A ship.") }, &OPERATOR)
        .await;
    publish_with(
        &other,
        &new(Kind::Record, "elsewhere", "A ship."),
        &OPERATOR,
        &fixture.config.memory,
    )
    .await
    .unwrap();
    for (user, text) in [(USER, "Has a ship."), ("ben", "Has a boat.")] {
        state(fixture.pool(), user, ("Owns", text)).await.unwrap();
    }
    let worker = fixture.start_worker();
    fixture.wait_for_embeddings(6, 2).await;
    worker.stop().await;
    revoke(&fixture.world, (Kind::Record, None, "revoked"), &OPERATOR).await.unwrap();
    fixture.put("replaced", "About something else.").await;
    fixture
        .execute(
            "update dalsegno.memory_items set expires_at = '2026-01-01' where name = 'expired'",
        )
        .await;
    let asks = async |world, who: MemoryCaller<'static>| fixture.names(world, "vessel", &who).await;
    assert_eq!(asks(&fixture.world, agent("writer")).await, ["own"]);
    assert_eq!(asks(&fixture.world, agent("curator")).await, ["foreign"]);
    assert_eq!(asks(&fixture.world, agent("copywriter")).await, Vec::<String>::new());
    let mut all = asks(&fixture.world, agent("planner")).await;
    all.sort();
    assert_eq!(all, ["foreign", "own"]);
    assert_eq!(asks(&other, agent("writer")).await, ["elsewhere"]);
    fixture.set_user(USER).await;
    let said = fixture.recall("vessel").await;
    assert_eq!(said["facts"].as_array().unwrap().len(), 1, "{said}");
    assert_eq!(said["facts"][0]["about"], USER);
    // Ended facts are not compared, either.
    state(fixture.pool(), USER, ("Owns", "Nothing.")).await.unwrap();
    let said = fixture.recall("vessel").await;
    assert!(said.get("facts").is_none(), "{said}");
}

#[tokio::test]
async fn full_text_search_answers_without_the_model_or_the_extension() {
    let fixture = Fixture::without_extension().await;
    let metrics = telemetry::init(&fixture.config.log).unwrap().metrics;
    let counted = |result: &str| {
        let line = format!("dalsegno_semantic_searches_total{{outcome=\"{result}\"}} ");
        let text = metrics.render();
        let n = text.lines().find_map(|it| it.strip_prefix(&line).map(str::to_owned));
        n.map_or(0, |n| n.parse::<u64>().unwrap())
    };
    fixture.put("timetable", "The ship leaves at nine.").await;
    let worker = fixture.start_worker();
    fixture.wait_for_embeddings(1, 0).await;
    worker.stop().await;
    let words_alone = async |fixture: &Fixture| {
        assert_eq!(fixture.find_names("ship").await, ["timetable"]);
        assert_eq!(fixture.find_names("vessel").await, Vec::<String>::new());
    };
    words_alone(&fixture).await;
    assert!(counted("no_extension") >= 2);
    let said = fixture.diagnosis().await;
    assert!(said.status == Status::Warn && said.fix.contains("create extension"), "{said:?}");
    fixture.execute("create extension vector").await;
    assert_eq!(fixture.diagnosis().await.status, Status::Ok);
    assert_eq!(fixture.find_names("vessel").await, ["timetable"]);
    let hasty = configured(&[
        ("ollama.base_url", &format!("http://{}", fixture.ollama.addr)),
        ("memory.embeddings_model", MODEL),
        ("memory.embeddings_timeout_ms", "100"),
    ]);
    let fixture = Fixture { tools: tools_of(&hasty, fixture.pool()), ..fixture };
    for fault in [Embeds::Missing, Embeds::Hangs] {
        *fixture.ollama.state.embeds.lock().unwrap() = fault;
        let before = counted("no_model");
        words_alone(&fixture).await;
        assert!(counted("no_model") >= before + 2, "{fault:?}");
    }
    *fixture.ollama.state.embeds.lock().unwrap() = Embeds::Missing;
    let said = fixture.diagnosis().await;
    assert!(said.status == Status::Warn && said.fix.contains("ollama pull"), "{said:?}");
    fixture.postgres.stop().await.unwrap();
}

#[tokio::test]
async fn older_items_get_their_embedding_and_removed_items_lose_it() {
    let fixture = Fixture::new().await;
    let without = configured(&[]).memory;
    for (name, text) in
        [("before", "A ship."), ("odd", &format!("A {REFUSED} ship.")), ("old", "A ferry.")]
    {
        publish_with(&fixture.world, &new(Kind::Record, name, text), &OPERATOR, &without)
            .await
            .unwrap();
    }
    for user in [USER, "ben"] {
        state(fixture.pool(), user, ("Owns", "A boat.")).await.unwrap();
    }
    let n_jobs = "select count(*) from dalsegno.jobs where kind = 'make_embeddings'";
    assert_eq!(fixture.count(n_jobs).await, 0);
    let worker = fixture.start_worker();
    fixture.wait_for_embeddings(3, 2).await;
    // A text that the model rejects does not affect others, and is found by its words.
    let mut found = fixture.find_names("vessel").await;
    found.sort();
    assert_eq!(found, ["before", "old"]);
    assert_eq!(fixture.find_names(REFUSED).await, ["odd"]);
    // The other model creates all vectors again, and is not compared with those of the first.
    worker.stop().await;
    let other = settings_of(&fixture.ollama, "bge-m3");
    let asks_other = Tools { pool: fixture.pool().clone(), ..tools_of(&other, fixture.pool()) };
    let fixture = Fixture { tools: asks_other, config: other, ..fixture };
    assert_eq!(fixture.find_names("vessel").await, Vec::<String>::new());
    let worker = fixture.start_worker();
    eventually("embeddings are created again", async || {
        let old = "select count(*) from dalsegno.memory_embeddings where model <> 'bge-m3'";
        (fixture.count(old).await == 0).then_some(())
    })
    .await;
    fixture.wait_for_embeddings(3, 2).await;
    assert_eq!(fixture.find_names("vessel").await.len(), 2);
    let mut tx = fixture.pool().begin().await.unwrap();
    facts::forget(&mut tx, USER, noon()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(fixture.count("select count(*) from dalsegno.fact_embeddings").await, 1);
    let mut tx = fixture.pool().begin().await.unwrap();
    erasures::request(&mut tx, fixture.world.campaign.id, "asked for", noon()).await.unwrap();
    tx.commit().await.unwrap();
    eventually("the campaign is erased", async || {
        let left = fixture.count("select count(*) from dalsegno.memory_embeddings").await;
        (left == 0).then_some(())
    })
    .await;
    worker.stop().await;
}

#[tokio::test]
async fn texts_refused_by_the_model_delay_no_other_embedding() {
    let fixture = Fixture::new().await;
    for name in ["cursed", "jinxed"] {
        fixture.put(name, &format!("An {BREAKING} ship.")).await;
    }
    fixture.put("odd", &format!("A {REFUSED} ship.")).await;
    for name in ["one", "two", "three"] {
        fixture.put(name, "A ship.").await;
    }
    state(fixture.pool(), USER, ("Owns", "A boat.")).await.unwrap();
    state(fixture.pool(), USER, ("Dreads", &format!("An {BREAKING} ferry."))).await.unwrap();
    let worker = fixture.start_worker();
    eventually("the job waits for its next attempt", async || {
        let waits = "select count(*) from dalsegno.jobs where kind = 'make_embeddings' and state = 'scheduled'";
        (fixture.count(waits).await == 1).then_some(())
    })
    .await;
    let mut found = fixture.find_names("vessel").await;
    found.sort();
    assert_eq!(found, ["one", "three", "two"], "embedded at the first attempt");
    let n_made = "select (select count(*) from dalsegno.memory_embeddings) + (select count(*) from dalsegno.fact_embeddings)";
    assert_eq!(fixture.count(n_made).await, 5, "the refused item is finished");
    eventually("the other items are abandoned", async || {
        fixture.execute("update dalsegno.jobs set run_at = now() where state = 'scheduled'").await;
        (fixture.count(n_made).await == 8).then_some(())
    })
    .await;
    fixture.wait_for_embeddings(6, 2).await;
    worker.stop().await;
    assert_eq!(fixture.find_names(BREAKING).await.len(), 2, "found by full-text search");
    let empty = "select (select count(*) from dalsegno.memory_embeddings where vector = '{}')
                      + (select count(*) from dalsegno.fact_embeddings where vector = '{}')";
    assert_eq!(fixture.count(empty).await, 4);
}

#[tokio::test]
async fn a_server_that_fails_at_every_text_leaves_no_item_without_an_embedding() {
    let fixture = Fixture::new().await;
    for name in ["one", "two", "three"] {
        fixture.put(name, "A ship.").await;
    }
    *fixture.ollama.state.embeds.lock().unwrap() = Embeds::Breaks;
    let worker = fixture.start_worker();
    eventually("the job waits for its next attempt", async || {
        let waits = "select count(*) from dalsegno.jobs where kind = 'make_embeddings' and state = 'scheduled'";
        (fixture.count(waits).await == 1).then_some(())
    })
    .await;
    assert_eq!(fixture.count("select count(*) from dalsegno.memory_embeddings").await, 0);
    // Three texts, then one, then another one.
    assert_eq!(fixture.ollama.n_requests("POST /api/embed"), 3);
    // Later writers need no other job: the waiting one will find their items.
    fixture.put("fleet", "Five boats.").await;
    let n_jobs = "select count(*) from dalsegno.jobs where kind = 'make_embeddings'";
    assert_eq!(fixture.count(n_jobs).await, 1);
    *fixture.ollama.state.embeds.lock().unwrap() = Embeds::Well;
    fixture.execute("update dalsegno.jobs set run_at = now()").await;
    fixture.wait_for_embeddings(4, 0).await;
    worker.stop().await;
    assert_eq!(fixture.find_names("vessel").await.len(), 4);
}

#[tokio::test]
async fn a_slow_server_gets_smaller_batches() {
    let mut fixture = Fixture::new().await;
    fixture.config.ollama.first_byte_timeout_secs = 2;
    for n in 0..60 {
        fixture.put(&format!("ship-{n}"), "A ship.").await;
    }
    *fixture.ollama.state.embeds.lock().unwrap() = Embeds::Slow(16);
    let worker = fixture.start_worker();
    fixture.wait_for_embeddings(60, 0).await;
    worker.stop().await;
    let asked = fixture.ollama.state.embedded.lock().unwrap();
    let sizes: Vec<_> = asked.iter().map(|body| body["input"].as_array().unwrap().len()).collect();
    // After the timeout of 32 texts, a request with one text shows that the server does not hang. Later requests have
    // half the size.
    assert_eq!(sizes, [32, 1, 16, 16, 16, 12]);
}

#[tokio::test]
async fn a_model_slower_to_load_than_the_query_timeout_is_loaded_in_the_background() {
    let fixture = Fixture::new().await;
    let hasty = configured(&[
        ("ollama.base_url", &format!("http://{}", fixture.ollama.addr)),
        ("memory.embeddings_model", MODEL),
        ("memory.embeddings_timeout_ms", "500"),
    ]);
    *fixture.ollama.state.embeds.lock().unwrap() = Embeds::Cold;
    let meanings = tools_of(&hasty, fixture.pool()).settings;
    for _ in 0..3 {
        assert_eq!(meanings.meanings.of_question("vessel").await, None);
    }
    // All three callers have disconnected, and one request is left.
    fixture.ollama.wait_for_disconnects(3).await;
    assert_eq!(fixture.ollama.n_requests("POST /api/embed"), 4);
    fixture.ollama.state.load.notify_one();
    eventually("the model is loaded", async || meanings.meanings.of_question("vessel").await).await;
}

#[tokio::test]
async fn the_api_and_the_command_line_use_semantic_search_too() {
    let (fixture, folder) = (Fixture::new().await, scratch_folder());
    let (url, base_url) = (fixture.url(), format!("http://{}", fixture.ollama.addr));
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
    let id = fixture.world.campaign.id.to_string();
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
    fixture.wait_for_embeddings(1, 0).await;
    says(&["memory", "facts", "state", USER, "Food", "Vegetarian since 2019."]).await;
    fixture.wait_for_embeddings(1, 1).await;
    let found = says(&["memory", "search", "--campaign", &id, "vessel"]).await;
    assert!(found.contains("timetable"), "{found}");
    let found = says(&["memory", "facts", "search", USER, "menu"]).await;
    assert!(found.contains("since 2019"), "{found}");
    for (path, wanted) in [
        (format!("/v1/campaigns/{id}/memory/search?q=vessel"), "timetable"),
        (format!("/v1/users/{USER}/facts/search?q=menu"), "since 2019"),
    ] {
        let answer = get(service.address, &path).await.unwrap();
        assert!(answer.status == 200 && answer.body.contains(wanted), "{answer:?}");
    }
    drop(service);
}
