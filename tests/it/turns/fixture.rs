//! A campaign, agents in files, and workers for it, in the process of the test or in their own processes.

use std::{collections::BTreeMap, path::PathBuf, process::Stdio, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::{
    clock::{Clock, ManualClock},
    config::Config,
    domain::{
        agents::SessionMode as Mode,
        agents::{Catalogue, Library},
        amount::{Limit, OnLimit},
        campaigns::{self, Campaign, LimitChange},
        cleanups::{self, Walk},
        feed, manifests, messages, sessions,
        sessions::Session,
        tasks::{self, Links, Task, TaskLink},
        turns::{self, Turn},
    },
    jobs::{Pool, Services},
    settings::{Environment, Flags},
    shutdown::Shutdown,
    traces::Traces,
    worker,
};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    task::JoinHandle,
};
use uuid::Uuid;

use crate::{
    app::{SOON, TestApp, TestDatabase, eventually, noon},
    control::feed_kinds::{assert_described, assert_feed_described},
    embedded::support::wait_for,
    leases,
    service::command,
    turns::contexts,
    volume::{self, Volume},
};

/// Fast polls, and a simulation without latency unless a test sets one.
const SETTINGS: [(&str, &str); 14] = [
    // A test changes a file and continues at once.
    ("agents.look_every_ms", "0"),
    ("queue.poll_busy_ms", "50"),
    ("queue.poll_idle_ms", "200"),
    ("queue.upkeep_secs", "1"),
    ("database.acquire_timeout_secs", "30"),
    ("database.max_connections", "8"),
    ("worker.turns_slots", "8"),
    ("sim.latency_ms", "0"),
    ("sim.chunk_delay_ms", "0"),
    ("sim.window_tokens", "100000"),
    ("sim.directives", "true"),
    // Processes of workers use the real clock, which is ahead of the test's by more every day.
    ("sessions.ttl_days.sim", "36500"),
    ("shutdown.drain_timeout_secs", "1"),
    ("log.format", "json"),
];

pub const WRITER: &str = "---\nname: writer\ndescription: Writes\n---\nYou write.\n";

pub struct Fixture {
    pub pool: PgPool,
    pub campaign: Campaign,
    pub clock: ManualClock,
    settings: BTreeMap<String, String>,
    file: Option<PathBuf>,
    environment: Environment,
    processes: leases::LeaseEnder,
    folder: TempDir,
    // Dropped last.
    database: TestDatabase,
}

/// A worker in the process of the test.
pub struct Worker {
    shutdown: Shutdown,
    work: JoinHandle<Result<(), worker::Error>>,
    pool: PgPool,
}

/// A process of `worker-turns`. Killed when dropped.
pub struct WorkerProcess {
    child: Child,
    log: PathBuf,
}

impl Fixture {
    pub async fn new(settings: &[(&str, &str)]) -> Self {
        Self::with_limit(settings, Limit::default()).await
    }

    pub async fn with_limit(settings: &[(&str, &str)], limit: Limit) -> Self {
        let database = TestDatabase::migrated().await;
        let pool = database.pool().await;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path.display().to_string()
        };
        let folders = [
            ("agents.folder", path("agents")),
            ("agents.skills_folder", path("skills")),
            ("agents.nodes_folder", path("nodes")),
            ("flows.folder", path("flows")),
            ("service.data_dir", path("data")),
        ];
        let own = settings.iter().map(|(key, value)| (*key, (*value).to_owned()));
        let usual = leases::LONG.into_iter().chain(SETTINGS);
        let usual = usual.map(|(key, value)| (key, value.to_owned()));
        let settings = usual.chain(folders).chain(own);
        let new = campaigns::New {
            name: "Harbour",
            brief: "Ten parts about a harbour.",
            client_context: Some("Short sentences."),
            limit,
        };
        let mut conn = pool.acquire().await.unwrap();
        let campaign = campaigns::create(&mut conn, &new, noon()).await.unwrap();
        drop(conn);
        let fixture = Self {
            pool,
            campaign,
            clock: ManualClock::at(noon()),
            settings: settings.map(|(key, value)| (key.to_owned(), value)).collect(),
            file: None,
            environment: Environment::default(),
            processes: leases::LeaseEnder::default(),
            folder,
            database,
        };
        fixture.write_agent("writer", WRITER);
        fixture
    }

    /// Adds a configuration file.
    pub fn with_file(mut self, file: &std::path::Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Adds a variable to the environment of its workers in this process.
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment = Environment::from([(name, value)]);
        self
    }

    pub fn write_agent(&self, name: &str, content: &str) {
        let path = self.folder.path().join("agents").join(format!("{name}.md"));
        std::fs::write(path, content).unwrap();
    }

    pub fn write_node(&self, name: &str, content: &str) {
        let path = self.folder.path().join("nodes").join(format!("{name}.md"));
        std::fs::write(path, content).unwrap();
    }

    pub fn write_template(&self, name: &str, content: &str) {
        let path = self.folder.path().join("flows").join(format!("{name}.md"));
        std::fs::write(path, content).unwrap();
    }

    pub fn write_skill(&self, name: &str, content: &str) {
        let folder = self.folder.path().join("skills").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), content).unwrap();
    }

    pub fn remove_agent(&self, name: &str) {
        std::fs::remove_file(self.folder.path().join("agents").join(format!("{name}.md"))).unwrap();
    }

    pub fn config(&self) -> Config {
        self.config_with(&[])
    }

    /// Returns the folder of this test.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    fn config_with(&self, settings: &[(&str, &str)]) -> Config {
        let own = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let set = self.settings.clone().into_iter().chain(own).collect();
        let flags = Flags { file: self.file.clone(), set };
        Config::load(&self.environment, &flags).unwrap()
    }

    /// Starts a worker in this process, on the clock of the test.
    pub async fn start_worker(&self) -> Worker {
        self.start_worker_with(&[]).await
    }

    /// Starts a worker with other settings, like one on another host.
    pub async fn start_worker_with(&self, settings: &[(&str, &str)]) -> Worker {
        self.start_worker_on(self.services(settings), settings).await
    }

    /// Builds the services that a worker process has from its start to its end.
    pub fn services(&self, settings: &[(&str, &str)]) -> Arc<Services> {
        let clock = Arc::new(self.clock.clone());
        let config = self.config_with(settings);
        let program = env!("CARGO_BIN_EXE_dalsegno").into();
        let traces = Traces::start(&config.traces).unwrap();
        Services::build(&config, clock, program, traces).unwrap()
    }

    /// Starts a worker with the services of an earlier one, which remember its state.
    pub async fn start_worker_on(
        &self,
        services: Arc<Services>,
        settings: &[(&str, &str)],
    ) -> Worker {
        self.start_worker_in(Pool::Turns, services, settings).await
    }

    /// Starts a worker of the pool of short jobs.
    pub async fn upkeep(&self) -> Worker {
        self.start_worker_in(Pool::Upkeep, self.services(&[]), &[]).await
    }

    /// Starts the API and the console, with the settings and the clock of the test.
    pub async fn start_app(&self) -> TestApp {
        let clock = Arc::new(self.clock.clone());
        Box::pin(TestApp::start_configured(self.pool.clone(), self.config(), clock)).await
    }

    async fn start_worker_in(
        &self,
        pool: Pool,
        services: Arc<Services>,
        settings: &[(&str, &str)],
    ) -> Worker {
        let config = self.config_with(settings);
        let (shutdown, database) = (Shutdown::new(), self.database.pool().await);
        let kept = database.clone();
        let stop = shutdown.clone();
        let work = tokio::spawn(async move {
            worker::run_pool(&config, services, &database.into(), stop, pool).await
        });
        Worker { shutdown, work, pool: kept }
    }

    /// Runs `dalsegno` with these arguments.
    pub async fn run_command(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = crate::service::dalsegno(self.folder.path());
        command.args(arguments).env("DATABASE_URL", self.database.url());
        command.output().await.unwrap()
    }

    /// Moves the campaign to a new installation on another host, and resumes it there.
    pub async fn moved(mut self) -> Self {
        let id = self.campaign.id.to_string();
        let file = self.folder.path().join("campaign.jsonl").display().to_string();
        self.succeed(&["campaign", "export", &id, "--file", &file]).await;
        self.pool.close().await;
        self.database = TestDatabase::migrated().await;
        self.pool = self.database.pool().await;
        let data = self.folder.path().join("moved").display().to_string();
        self.settings.insert("service.data_dir".to_owned(), data);
        self.succeed(&["campaign", "import", &file]).await;
        self.succeed(&["campaign", "resume", &id]).await;
        self
    }

    /// Runs `dalsegno` with these arguments, and returns its output.
    pub async fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run_command(arguments).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `dalsegno` with these arguments and the settings of the test.
    pub async fn run_configured(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = crate::service::dalsegno(self.folder.path());
        self.set_variables(&mut command, &[]);
        command.args(arguments).output().await.unwrap()
    }

    fn set_variables(&self, command: &mut Command, settings: &[(&str, &str)]) {
        let own = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        for (key, value) in self.settings.clone().into_iter().chain(own) {
            command.env(format!("DALSEGNO_{}", key.to_uppercase().replace('.', "__")), value);
        }
        command.env("DATABASE_URL", self.database.url());
    }

    /// Starts a `worker-turns`.
    pub fn process(&self, settings: &[(&str, &str)]) -> WorkerProcess {
        self.process_of(env!("CARGO_BIN_EXE_worker-turns"), settings)
    }

    /// Starts a `worker-upkeep`.
    pub fn upkeep_process(&self, settings: &[(&str, &str)]) -> WorkerProcess {
        self.process_of(env!("CARGO_BIN_EXE_worker-upkeep"), settings)
    }

    /// Starts a `worker-turns` whose own files are on a volume of this many MiB.
    pub fn process_on_volume(&self, mib: u32) -> (WorkerProcess, Volume) {
        let folder = self.folder.path().join("small");
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = command(volume::PROGRAM, self.folder.path());
        command.args(volume::arguments(mib, &folder, env!("CARGO_BIN_EXE_worker-turns")));
        let data = folder.join("data").display().to_string();
        let process = self.started(command, &[("service.data_dir", &data)]);
        wait_for(SOON, || process.log().contains("worker registered").then_some(()))
            .unwrap_or_else(|| panic!("the worker does not start: {}", process.log()));
        let volume = Volume::seen_by(process.child.id().unwrap(), &folder);
        (process, volume)
    }

    fn process_of(&self, binary: &str, settings: &[(&str, &str)]) -> WorkerProcess {
        self.started(command(binary, self.folder.path()), settings)
    }

    fn started(&self, mut command: Command, settings: &[(&str, &str)]) -> WorkerProcess {
        let log = self.folder.path().join(format!("worker-{}", Uuid::new_v4()));
        self.set_variables(&mut command, settings);
        command.env("TOKIO_WORKER_THREADS", "2");
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        let child = command.kill_on_drop(true).spawn().unwrap();
        self.processes.watch_and_rescue(&self.pool, child.id().unwrap());
        WorkerProcess { child, log }
    }

    /// Removes all expired sessions, as the nightly cleanup does. Returns their number.
    pub async fn clean_up(&self) -> i64 {
        let config = self.config();
        let mut walk = Walk::new(self.clock.now(), &config.sessions, &config.memory);
        let (mut conn, mut n_removed) = (self.pool.acquire().await.unwrap(), 0);
        while let Some(page) = walk.page(&mut conn, 100).await.unwrap() {
            let mut tx = self.pool.begin().await.unwrap();
            n_removed += cleanups::remove(&mut tx, &walk, page.going).await.unwrap().sessions;
            tx.commit().await.unwrap();
        }
        n_removed
    }

    /// Adds a task for the writer.
    pub async fn add(&self, prompt: &str) -> Task {
        self.add_for("writer", "main", prompt).await
    }

    pub async fn add_for(&self, agent: &str, instance: &str, prompt: &str) -> Task {
        self.add_as(agent, instance, prompt, None, Limit::default()).await
    }

    pub async fn add_as(
        &self,
        agent: &str,
        instance: &str,
        prompt: &str,
        session_mode: Option<Mode>,
        budget: Limit,
    ) -> Task {
        self.add_at_node((agent, instance), None, prompt, session_mode, budget).await
    }

    /// Adds a task of the writer that waits for these.
    pub async fn add_after(&self, instance: &str, prompt: &str, others: &[&Task]) -> Task {
        let after: Vec<_> = others.iter().map(|other| TaskLink::Task(other.id)).collect();
        let links = Links { depends_on: &after, ..Links::default() };
        let added = self.add_linked("writer", instance, prompt, None, Limit::default(), links);
        added.await.unwrap()
    }

    /// Adds a task of the writer that waits for this one, in a transaction of the caller.
    pub async fn add_after_in(
        &self,
        conn: &mut PgConnection,
        instance: &str,
        other: &Task,
    ) -> Task {
        let after = [TaskLink::Task(other.id)];
        let links = Links { depends_on: &after, ..Links::default() };
        let config = self.config();
        let catalogue = Library::open(&config.agents).unwrap().current();
        let new = tasks::New {
            instance,
            links,
            ..tasks::New::for_agent(self.campaign.id, catalogue.agent("writer").unwrap(), "Join.")
        };
        tasks::add(conn, &config.tasks, &new, self.clock.now()).await.unwrap().task
    }

    /// Adds a task under a key.
    pub async fn add_keyed(
        &self,
        prompt: &str,
        key: &str,
        links: Links<'_>,
    ) -> Result<tasks::AddResult, tasks::Error> {
        let config = self.config();
        let catalogue = Library::open(&config.agents).unwrap().current();
        let new = tasks::New {
            idempotency_key: Some(key),
            links,
            ..tasks::New::for_agent(self.campaign.id, catalogue.agent("writer").unwrap(), prompt)
        };
        let mut tx = self.pool.begin().await.unwrap();
        let added = tasks::add(&mut tx, &config.tasks, &new, self.clock.now()).await?;
        tx.commit().await.unwrap();
        Ok(added)
    }

    /// Adds a task of the writer that waits for others, and for a time.
    pub async fn add_at(&self, run_at: DateTime<Utc>, links: Links<'_>) -> Task {
        let config = self.config();
        let catalogue = Library::open(&config.agents).unwrap().current();
        let new = tasks::New {
            run_at: Some(run_at),
            links,
            ..tasks::New::for_agent(self.campaign.id, catalogue.agent("writer").unwrap(), "Join.")
        };
        let mut tx = self.pool.begin().await.unwrap();
        let added = tasks::add(&mut tx, &config.tasks, &new, self.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        added.task
    }

    /// Pauses the conversation of an instance.
    pub async fn hold(&self, agent: &str, instance: &str) {
        self.lane("select dalsegno.hold_lane($1, 'a test')", agent, instance).await;
    }

    pub async fn release(&self, agent: &str, instance: &str) {
        self.lane("select dalsegno.release_lane($1)", agent, instance).await;
    }

    async fn lane(&self, sql: &'static str, agent: &str, instance: &str) {
        let lane = tasks::lane(self.campaign.id, agent, instance);
        let hit: bool = sqlx::query_scalar(sql).bind(lane).fetch_one(&self.pool).await.unwrap();
        assert!(hit, "there is no lane of {agent}/{instance}");
    }

    pub async fn add_linked(
        &self,
        agent: &str,
        instance: &str,
        prompt: &str,
        session_mode: Option<Mode>,
        budget: Limit,
        links: Links<'_>,
    ) -> Result<Task, tasks::Error> {
        self.add_placed((agent, instance), None, prompt, session_mode, budget, links).await
    }

    /// Adds a task that belongs to a node.
    pub async fn add_at_node(
        &self,
        role: (&str, &str),
        node: Option<&str>,
        prompt: &str,
        session_mode: Option<Mode>,
        budget: Limit,
    ) -> Task {
        let added = self.add_placed(role, node, prompt, session_mode, budget, Links::default());
        added.await.unwrap()
    }

    async fn add_placed(
        &self,
        (agent, instance): (&str, &str),
        node: Option<&str>,
        prompt: &str,
        session_mode: Option<Mode>,
        budget: Limit,
        links: Links<'_>,
    ) -> Result<Task, tasks::Error> {
        let config = self.config();
        let catalogue: Arc<Catalogue> = Library::open(&config.agents).unwrap().current();
        let new = tasks::New {
            instance,
            node: node.map(|node| &**catalogue.node(node).unwrap()),
            session_mode,
            budget,
            links,
            ..tasks::New::for_agent(self.campaign.id, catalogue.agent(agent).unwrap(), prompt)
        };
        let mut tx = self.pool.begin().await.unwrap();
        let added = tasks::add(&mut tx, &config.tasks, &new, self.clock.now()).await?;
        tx.commit().await.unwrap();
        Ok(added.task)
    }

    /// Lets tasks fail at the limit of the campaign, instead of waiting.
    pub async fn fail_at_limit(&self) {
        self.change_limit(LimitChange { on_limit: Some(OnLimit::Fail), ..Default::default() })
            .await;
    }

    pub async fn change_limit(&self, change: LimitChange) {
        let mut conn = self.pool.acquire().await.unwrap();
        campaigns::change_limit(&mut conn, self.campaign.id, change).await.unwrap();
    }

    pub async fn budget(&self) -> campaigns::Budget {
        campaigns::budget(&self.pool, self.campaign.id).await.unwrap().unwrap()
    }

    /// Returns the time of the test's clock.
    pub fn clock_now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Waits until this number of tasks wait for their budgets and nothing runs.
    pub async fn waiting_for_budget(&self, n: i64) {
        eventually("tasks wait for their budgets", async || {
            let waiting = "select count(*) from dalsegno.budget_waits";
            let busy = "select count(*) from dalsegno.jobs where state in ('ready', 'running') and kind = 'run_turn'";
            (self.count(waiting).await == n && self.count(busy).await == 0).then_some(())
        })
        .await;
    }

    pub async fn cancel(&self, task: &Task) {
        let mut tx = self.pool.begin().await.unwrap();
        tasks::cancel(&mut tx, task.id, "not wanted", self.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub async fn task(&self, task: &Task) -> Task {
        tasks::get(&self.pool, task.id).await.unwrap()
    }

    /// Waits until the task has ended.
    pub async fn ended(&self, task: &Task) -> Task {
        eventually("the task has ended", async || {
            let task = self.task(task).await;
            task.ended_at.is_some().then_some(task)
        })
        .await
    }

    /// Like [`ended`](Self::ended), where the provider refuses calls in between.
    pub async fn ended_after_waits(&self, task: &Task) -> Task {
        eventually("the task has ended", async || {
            self.end_waits().await;
            let task = self.task(task).await;
            task.ended_at.is_some().then_some(task)
        })
        .await
    }

    /// Moves the clock to the end of the wait for a busy provider. Returns the length of that wait.
    pub async fn end_waits(&self) -> TimeDelta {
        // The waits of models and of tasks are by the clock of the test; the first wait of a job is by that of the database. A task
        // past its deadline does not wait as long as the model.
        let left = "select coalesce((select least(max(b.until), (select min(t.until) from dalsegno.busy_tasks as t where t.until > $1)) - $1
                                       from dalsegno.busy_models as b where b.until > $1 having count(*) > 0),
                                    (select min(b.until) - $1 from dalsegno.busy_tasks as b join dalsegno.tasks as t on t.id = b.task_id
                                      where b.until > $1 and t.ended_at is null),
                                    (select min(run_at) - now() from dalsegno.jobs where wait_reason = 'snooze' and run_at > now()),
                                    interval '0')";
        let left = format!("select (extract(epoch from ({left})) * 1000000)::bigint");
        let left: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(left))
            .bind(self.clock.now())
            .fetch_one(&self.pool)
            .await
            .unwrap();
        let left = TimeDelta::microseconds(left);
        self.advance(left);
        let due = "update dalsegno.jobs set run_at = now() where wait_reason = 'snooze'";
        sqlx::query(due).execute(&self.pool).await.unwrap();
        left
    }

    /// Like [`ended`](Self::ended), after a crash, without the pause that follows one.
    pub async fn ended_after_pause(&self, task: &Task) -> Task {
        eventually("the task has ended", async || {
            self.end_crash_pauses().await;
            let task = self.task(task).await;
            task.ended_at.is_some().then_some(task)
        })
        .await
    }

    /// Makes the jobs due that were taken back from lost workers.
    pub async fn end_crash_pauses(&self) {
        let due = "update dalsegno.jobs set run_at = now() where wait_reason = 'crash' and run_at > now()";
        sqlx::query(due).execute(&self.pool).await.unwrap();
    }

    /// Waits until the task is done.
    pub async fn done(&self, task: &Task) -> Task {
        let task = self.ended(task).await;
        assert_eq!(task.state, tasks::State::Done, "{task:?}");
        task
    }

    /// Waits until the job of the task is gone, too: a commit that is counted twice would be noticed.
    pub async fn settled(&self) {
        eventually("no job is left", async || {
            let left: i64 =
                self.count("select count(*) from dalsegno.jobs where kind in ('run_turn', 'run_joined_turn')").await;
            (left == 0).then_some(())
        })
        .await;
    }

    pub async fn session(&self, task: &Task) -> Session {
        let id = self.task(task).await.session_id.expect("the task has a session");
        sessions::get(&self.pool, id).await.unwrap()
    }

    pub async fn sessions(&self) -> Vec<Session> {
        let mut sessions = sessions::list(
            &self.pool,
            sessions::Filter::default(),
            dalsegno::domain::Page { after: None, limit: 1000 },
        )
        .await
        .unwrap();
        sessions.reverse();
        sessions
    }

    pub async fn turns(&self, task: &Task) -> Vec<Turn> {
        turns::of_task(&self.pool, task.id).await.unwrap()
    }

    pub async fn messages(&self, session_id: Uuid) -> Vec<messages::StoredMessage> {
        messages::list(&self.pool, session_id, messages::Span::all()).await.unwrap()
    }

    /// Returns the transcript as `Role: text`.
    pub async fn transcript(&self, session_id: Uuid) -> Vec<String> {
        let line = |stored: messages::StoredMessage| {
            format!("{:?}: {}", stored.message.role, stored.message.text)
        };
        self.messages(session_id).await.into_iter().map(line).collect()
    }

    pub async fn manifests(&self, session_id: Uuid) -> Vec<manifests::Manifest> {
        manifests::list(&self.pool, session_id, 0, 1000).await.unwrap()
    }

    pub async fn feed(&self) -> Vec<feed::Event> {
        let filter = feed::Filter { campaign_id: None, after: 0, up_to: i64::MAX, limit: 10_000 };
        let events = feed::list(&self.pool, filter).await.unwrap();
        assert_described(&events);
        events
    }

    /// Returns the kinds of the feed's events about this task, in order, beginning after its first event and without
    /// the progress of calls.
    pub async fn kinds(&self, task: &Task) -> Vec<String> {
        let events = self.feed().await.into_iter();
        let about = events.filter(|event| event.task_id == Some(task.id));
        let kinds: Vec<_> =
            about.map(|event| event.kind).filter(|kind| kind != "turn.progress").collect();
        assert_eq!(kinds[0], "task.queued");
        kinds[1..].to_vec()
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    pub async fn json(&self, sql: &'static str) -> Value {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    pub fn advance(&self, by: TimeDelta) -> DateTime<Utc> {
        self.clock.advance(by);
        self.clock.now()
    }
}

impl Worker {
    /// Asks the worker to stop, and waits until it has. All calls that were stored until then can be assembled again, and all events are as
    /// the catalogue describes them.
    pub async fn stop(self) {
        let pool = self.pool.clone();
        self.stop_only().await;
        assert_feed_described(&pool).await;
        contexts::assert_exact(&pool).await;
    }

    /// Stops the worker of a test that changes or removes rows of contexts.
    pub async fn stop_only(self) {
        self.shutdown.soft.cancel();
        tokio::time::timeout(SOON, self.work).await.unwrap().unwrap().unwrap();
    }
}

impl WorkerProcess {
    pub fn signal(&self, signal: rustix::process::Signal) {
        crate::embedded::support::send(self.child.id().expect("the worker runs"), signal);
    }

    /// Kills the process, and waits until it is gone.
    pub async fn kill(mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.ended().await;
    }

    pub async fn ended(&mut self) -> std::process::ExitStatus {
        let ended = tokio::time::timeout(SOON, self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("does not end:\n{}", self.log())).unwrap()
    }

    /// Like [`ended`](Self::ended), where many start at once.
    pub async fn ended_after_pause(&mut self) -> std::process::ExitStatus {
        let ended = tokio::time::timeout(SOON, self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("does not end:\n{}", self.log())).unwrap()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}
