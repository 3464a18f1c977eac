//! A campaign for tests, with the steps of a worker.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::domain::agents::SessionMode as Mode;
use dalsegno::{
    context,
    domain::{
        Amount, Page,
        agents::{Agent, Catalogue, Config, Provider},
        amount::{Limit, OnLimit},
        budgets::{self, Payers, Spender},
        campaigns::{self, Campaign},
        conversations::{Inheritance, NewSession, ResolvedSession, SessionRequest, resolve},
        messages::{self, MaxWeight},
        sessions::{self, Reason},
        tasks::{self, Task, TaskFilter},
        turn_phases,
        turn_phases::{AnsweredTurn, Begin, Failure, StartedTurn, TurnEnd},
        turns::HistoryCheck,
        usage,
    },
    jobs::expired_session,
    transcript::{Message, Role},
};
use sqlx::PgPool;
use uuid::Uuid;

use crate::app::{TestDatabase, noon};

/// The caller of calls without a task.
pub const SPENDER: Spender<'_> = Spender { agent: "copywriter", task_id: None };

pub const HASH: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// A campaign, and the agents that come with the service.
pub struct World {
    pub pool: PgPool,
    pub campaign: Campaign,
    pub catalogue: Catalogue,
    leases: AtomicI64,
    // Dropped last. `None`: the database belongs to the caller.
    database: Option<TestDatabase>,
}

/// Settings of an agent at the time of a turn.
#[derive(Clone, Copy)]
pub struct TurnSettings {
    pub provider: &'static str,
    pub model: &'static str,
    pub prompt_hash: &'static str,
    pub at: DateTime<Utc>,
    pub inherit_max_weight: i64,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self {
            provider: "sim",
            model: "sim-1",
            prompt_hash: HASH,
            at: noon(),
            inherit_max_weight: i64::MAX,
        }
    }
}

impl World {
    pub async fn new() -> Self {
        Self::with_limit(Limit::default()).await
    }

    pub async fn with_limit(limit: Limit) -> Self {
        let database = TestDatabase::migrated().await;
        let pool = database.pool().await;
        Self { database: Some(database), ..Self::over(pool, limit).await }
    }

    /// Creates a campaign in a database of the caller.
    pub async fn over(pool: PgPool, limit: Limit) -> Self {
        let new =
            campaigns::New { name: "Harbour", brief: "Ten parts.", client_context: None, limit };
        let mut conn = pool.acquire().await.unwrap();
        let campaign = campaigns::create(&mut conn, &new, noon()).await.unwrap();
        drop(conn);
        let catalogue = Catalogue::load(&shipped()).unwrap();
        Self { pool, campaign, catalogue, leases: AtomicI64::new(1), database: None }
    }

    /// Charges an amount to the campaign, whose tasks fail at the limit.
    pub async fn spend_all(&self, spent: Amount) {
        let mut conn = self.pool.acquire().await.unwrap();
        let (id, on_limit) = (self.campaign.id, Some(OnLimit::Fail));
        let change = campaigns::LimitChange { on_limit, ..Default::default() };
        campaigns::change_limit(&mut conn, id, change).await.unwrap();
        let (payers, amounts) = (Payers::campaign(id), (Amount::ZERO, spent));
        budgets::settle(&mut *conn, payers, SPENDER, amounts, noon()).await.unwrap();
    }

    /// Returns the URL of the database, for other programs.
    pub fn url(&self) -> String {
        self.database.as_ref().unwrap().url()
    }

    pub fn agent(&self) -> &Agent {
        self.catalogue.agent("copywriter").unwrap()
    }

    pub fn ask<'a>(&'a self, prompt: &'a str) -> tasks::New<'a> {
        tasks::New::for_agent(self.campaign.id, self.agent(), prompt)
    }

    pub async fn add(&self, prompt: &str) -> Task {
        self.add_new(&self.ask(prompt)).await.unwrap().task
    }

    /// Adds a task that no worker claims during the test.
    pub async fn add_later(&self, prompt: &str) -> Task {
        let run_at = Some(noon() + TimeDelta::days(3_650));
        self.add_new(&tasks::New { run_at, ..self.ask(prompt) }).await.unwrap().task
    }

    pub async fn add_mode(&self, prompt: &str, mode: Mode) -> Task {
        self.add_new(&tasks::New { session_mode: Some(mode), ..self.ask(prompt) })
            .await
            .unwrap()
            .task
    }

    pub async fn add_new(&self, new: &tasks::New<'_>) -> Result<tasks::AddResult, tasks::Error> {
        let mut tx = self.pool.begin().await.unwrap();
        let added = tasks::add(&mut tx, &limits(), new, noon()).await?;
        tx.commit().await.unwrap();
        Ok(added)
    }

    pub fn lease(&self) -> i64 {
        self.leases.fetch_add(1, Ordering::Relaxed)
    }

    /// Resolves the session of a task and begins its turn, in one transaction like a worker.
    pub async fn begin(
        &self,
        task: &Task,
        lease: i64,
        now: TurnSettings,
    ) -> (ResolvedSession, StartedTurn) {
        self.try_begin(task, lease, now, Amount::ZERO).await.unwrap()
    }

    pub async fn try_begin(
        &self,
        task: &Task,
        lease: i64,
        now: TurnSettings,
        reserve: Amount,
    ) -> Result<(ResolvedSession, StartedTurn), turn_phases::Error> {
        let mut tx = self.pool.begin().await.unwrap();
        let resolved = resolve(
            &mut tx,
            &opening(task, now),
            &wanted(task, now),
            lease,
            &inheritance(now.inherit_max_weight, now.at),
        )
        .await?;
        let mut new = Vec::new();
        if resolved.was_interrupted() {
            new.push(message(Uuid::new_v4(), Role::Notice, "The last turn was cut off."));
        }
        new.push(message(task.id, Role::User, &task.prompt));
        let begin = Begin {
            chain: None,
            minted: None,
            session: &resolved.session,
            task_id: task.id,
            job_id: task.job_id,
            lease,
            attempt: 1,
            reserve,
            budgets: &[],
            messages: &new,
            shows_posts: false,
            events: &[],
            now: now.at,
        };
        let begun = turn_phases::begin(&mut tx, &begin).await?;
        tx.commit().await.unwrap();
        Ok((resolved, begun))
    }

    pub async fn commit(
        &self,
        begun: &StartedTurn,
        answer: &str,
        now: TurnSettings,
    ) -> Result<(), turn_phases::Error> {
        let messages = [message(Uuid::new_v4(), Role::Assistant, answer)];
        let calls = [call(begun, None)];
        let ending = TurnEnd {
            turn: begun,
            calls: &calls,
            messages: &messages,
            record: Default::default(),
            now: now.at,
        };
        let mut tx = self.pool.begin().await.unwrap();
        turn_phases::commit(&mut tx, &ending, &done(answer, now)).await?;
        tx.commit().await.unwrap();
        Ok(())
    }

    /// Fails a turn without an answer. With a reason for a rebuild, its task waits for the next attempt; otherwise the task fails, too.
    pub async fn fail(&self, begun: &StartedTurn, error: &str, rebuild: Option<Reason>) {
        let ending = TurnEnd {
            turn: begun,
            calls: &[],
            messages: &[],
            record: Default::default(),
            now: noon(),
        };
        let failure = Failure {
            error,
            rebuild,
            ends_task: rebuild.is_none(),
            refusal: None,
            forgotten: false,
            interrupted: false,
            history_check: None,
            rejected: false,
            put_off: false,
        };
        let mut tx = self.pool.begin().await.unwrap();
        turn_phases::fail(&mut tx, &ending, &failure).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Runs a whole turn of a new task.
    pub async fn turn(&self, prompt: &str, now: TurnSettings) -> ResolvedSession {
        let task = self.add(prompt).await;
        let (resolved, begun) = self.begin(&task, self.lease(), now).await;
        self.commit(&begun, &format!("Answer to: {prompt}"), now).await.unwrap();
        resolved
    }

    /// All tasks, the newest first.
    pub async fn tasks(&self) -> Vec<Task> {
        let (filter, page) = (TaskFilter::default(), Page { after: None, limit: 10_000 });
        let mut conn = self.pool.acquire().await.unwrap();
        tasks::list(&mut conn, &filter, page).await.unwrap()
    }

    pub async fn task(&self, id: Uuid) -> Task {
        tasks::get(&self.pool, id).await.unwrap()
    }

    pub async fn session(&self, id: Uuid) -> sessions::Session {
        sessions::get(&self.pool, id).await.unwrap()
    }

    pub async fn sessions(&self) -> Vec<sessions::Session> {
        sessions::list(&self.pool, sessions::Filter::default(), Default::default()).await.unwrap()
    }

    /// Keeps the sessions open by the clock of the host, which commands use.
    pub async fn keep_sessions(&self) {
        let sql = "update dalsegno.sessions set expires_at = now() + interval '30 days'";
        sqlx::query(sql).execute(&self.pool).await.unwrap();
    }

    /// Returns the transcript as `role: text`.
    pub async fn transcript(&self, session_id: Uuid) -> Vec<String> {
        let stored = messages::list(&self.pool, session_id, messages::Span::all()).await.unwrap();
        let line = |stored: &messages::StoredMessage| {
            format!("{:?}: {}", stored.message.role, stored.message.text)
        };
        stored.iter().map(line).collect()
    }
}

pub fn shipped() -> Config {
    files("does/not/exist", "does/not/exist")
}

/// Returns a configuration for these folders, with the simulation as default.
pub fn files(folder: impl Into<PathBuf>, skills_folder: impl Into<PathBuf>) -> Config {
    Config {
        folder: folder.into(),
        skills_folder: skills_folder.into(),
        nodes_folder: "/no/nodes".into(),
        look_every_ms: 0,
        known_providers: providers(),
        session_holders: vec![Provider::parse("claude").unwrap()],
        provider: Provider::parse("sim").unwrap(),
        model: "sim-1".to_owned(),
        variables: vec!["BOARD_TOKEN".to_owned()],
        fallback_after: 3,
        fallback_secs: 900,
        max_rounds: 16,
        max_same_calls: 3,
        tool_timeout_secs: 60,
        tool_result_max_chars: 24_000,
    }
}

fn providers() -> Vec<Provider> {
    ["claude", "ollama", "sim"].map(|name| Provider::parse(name).unwrap()).to_vec()
}

pub fn limits() -> tasks::Config {
    tasks::Config {
        max_prompt_bytes: 1000,
        max_corrections: 2,
        max_attachments: 3,
        max_attachment_bytes: 1000,
        max_attachments_bytes: 2000,
    }
}

pub fn opening(task: &Task, now: TurnSettings) -> NewSession<'_> {
    NewSession {
        campaign_id: task.campaign_id,
        agent: &task.agent,
        instance: &task.instance,
        provider: now.provider,
        model: now.model,
        prompt_hash: now.prompt_hash,
        task_id: Some(task.id),
        fence_seed: [7; 32],
        expires_at: now.at + TimeDelta::days(7),
        now: now.at,
    }
}

pub fn wanted(task: &Task, now: TurnSettings) -> SessionRequest<'static> {
    SessionRequest {
        task_id: task.id,
        mode: task.session_mode,
        provider: now.provider,
        model: now.model,
        prompt_hash: now.prompt_hash,
        now: now.at,
    }
}

/// Returns an inheritance with summaries of sessions that expired within 180 days.
pub fn inheritance(max_weight: i64, now: DateTime<Utc>) -> Inheritance<'static> {
    Inheritance {
        max_weight: MaxWeight::of_newest(max_weight),
        forgotten_until: now - TimeDelta::days(180),
        render: &|kept| expired_session::render(kept, 8192, &context::Calibration::cold()),
    }
}

/// Builds a message with its weight, as the service computes it.
pub fn message(id: Uuid, role: Role, text: &str) -> messages::New {
    let tool_call_id = (role == Role::Tool).then(|| "call-1".to_owned());
    let plain = Message {
        role,
        text: text.to_owned(),
        tool_calls: Vec::new(),
        tool_call_id,
        tool_name: None,
        media: Vec::new(),
    };
    measured(id, plain)
}

pub fn measured(id: Uuid, message: Message) -> messages::New {
    let entry = context::Entry::new(id, 0, messages::make_storable(message));
    messages::New {
        id,
        weight: i64::try_from(entry.weight.millitokens()).unwrap(),
        digest: *entry.digest.as_bytes(),
        message: std::sync::Arc::unwrap_or_clone(entry.message),
        partial: false,
    }
}

pub fn call<'a>(begun: &StartedTurn, provider_message_id: Option<&'a str>) -> usage::Call<'a> {
    usage::Call {
        campaign_id: begun.campaign_id,
        task_id: Some(begun.task_id),
        session_id: Some(begun.session_id),
        turn: Some(begun.turn),
        agent: "copywriter",
        provider: "sim",
        model: "sim-1",
        purpose: usage::Purpose::Turn,
        outcome: usage::Outcome::Done,
        provider_message_id,
        tokens: usage::Tokens { input: Some(30), output: Some(10), ..usage::Tokens::default() },
        cost_micros: 500,
        price: None,
        first_byte_ms: Some(1),
        total_ms: Some(2),
        called_at: noon(),
    }
}

pub fn done(result: &str, now: TurnSettings) -> AnsweredTurn<'_> {
    AnsweredTurn {
        task: tasks::End::Done { result, result_json: None },
        context_tokens: Some(40),
        kept: None,
        board: None,
        expires_at: now.at + TimeDelta::days(7),
        calibration: None,
        checkpoint: None,
        flags: &[],
        history_check: HistoryCheck::NotProvable,
        handed_on: None,
    }
}
