//! The sequence of the demo: the operator's posts in their order, the kill of a worker and the expiry of a session.
//!
//! The operator calls the planner only. The planner's posts call the writers and the reviewer.

use std::time::Duration;

use anyhow::anyhow;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{demo_tasks::DemoTasks, display::Display, script, setup::DemoSetup, watch::Watch};
use crate::{
    cli::{Exit, Failure},
    clock::Clock,
    domain::{
        agents::Library,
        amount::Limit,
        campaigns::{self, Campaign},
        compactions::CompactSession,
        mentions,
        sessions::{self, Session},
        tasks::{self, Task},
        transaction,
    },
    queue::{Job as _, admin},
};

/// Pause between two polls.
const PAUSE: Duration = Duration::from_millis(100);
/// Time without an event after which the demo gives up.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

pub(super) struct DemoScript<'a> {
    pub(super) stage: &'a mut DemoSetup,
    pub(super) display: &'a mut Display,
    clock: &'a dyn Clock,
    library: Library,
    campaign: Campaign,
    watch: Watch,
    cast: DemoTasks,
}

/// The faults of the demo. Their effects are read from the tables.
#[derive(Debug, Clone)]
pub(super) struct DemoFaults {
    pub(super) campaign: Campaign,
    pub(super) kill: Kill,
    /// The session that was expired.
    pub(super) expired: Uuid,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Kill {
    pub(super) task_id: Uuid,
    pub(super) worker_id: Uuid,
    pub(super) pid: i32,
    pub(super) killed_at: DateTime<Utc>,
    /// Bytes of the answer that the feed had reported.
    pub(super) arrived_bytes: u64,
}

impl<'a> DemoScript<'a> {
    pub(super) async fn begin(
        stage: &'a mut DemoSetup,
        display: &'a mut Display,
        clock: &'a dyn Clock,
    ) -> Result<Self, Failure> {
        let library = Library::open(&stage.settings.config.agents)?;
        let new = campaigns::New {
            name: script::CAMPAIGN,
            brief: script::BRIEF,
            client_context: Some(script::CLIENT_CONTEXT),
            limit: Limit::default(),
        };
        let campaign = stage.create_campaign(&new, clock.now()).await?;
        let watch = Watch::of(campaign.id);
        Ok(Self { stage, display, clock, library, campaign, watch, cast: DemoTasks::default() })
    }

    pub(super) fn campaign_id(&self) -> Uuid {
        self.campaign.id
    }

    pub(super) async fn perform(mut self) -> Result<DemoFaults, Failure> {
        let mut kill = None;
        let mut expired = None;
        for round in 1..=script::N_ROUNDS {
            // The first post states the subject, so it is addressed to all.
            let all = ["all".to_owned()];
            let to = (round == 1).then_some(&all[..]);
            self.add_post(&script::hand_out(round), to).await?;
            let parts = script::parts_of(round);
            if parts.contains(&script::KILLED_PART) {
                kill = Some(self.kill_writer(script::KILLED_PART).await?);
            }
            self.until(|cast| cast.parts_done() >= *parts.end()).await?;
            self.wait_for_summaries().await?;
            if round == script::ROUND_BEFORE_REST {
                expired = Some(self.expire_session(script::WRITERS[0]).await?);
            }
        }
        self.add_post(&script::put_together(), None).await?;
        self.until(DemoTasks::has_reviewed).await?;
        self.wait_for_summaries().await?;
        self.display.end();
        match (kill, expired) {
            (Some(kill), Some(expired)) => {
                Ok(DemoFaults { campaign: self.campaign, kill, expired })
            }
            _ => Err(Failure::failed(anyhow!("the demo has no round for its kill and its expiry"))),
        }
    }

    /// Posts as the operator.
    async fn add_post(&mut self, text: &str, to: Option<&[String]>) -> Result<(), Failure> {
        let catalogue = self.library.current();
        let campaign_id = self.campaign.id;
        let asked = mentions::NewPost {
            campaign_id,
            text,
            to,
            reply_to: None,
            idempotency_key: None,
            added_by: "demo",
        };
        let config = &self.stage.settings.config;
        let limits = (&config.mentions, &config.tasks);
        let mut tx = transaction::begin(self.stage.pool()).await?;
        mentions::post(&mut tx, &catalogue, limits, &asked, self.clock.now()).await?;
        transaction::commit(tx).await?;
        Ok(())
    }

    /// Waits until a part of the answer is in the feed, then kills the worker that writes it.
    async fn kill_writer(&mut self, number: usize) -> Result<Kill, Failure> {
        let begun = |cast: &DemoTasks| {
            cast.part(number).is_some_and(|part| part.arrived_bytes > 0 || part.is_done)
        };
        self.until(begun).await?;
        let scene = self.cast.part(number).filter(|part| !part.is_done);
        let scene = scene.ok_or_else(|| too_late(number))?;
        let (task_id, job_id, arrived_bytes) = (scene.task_id, scene.job_id, scene.arrived_bytes);
        let holder = admin::holder(self.stage.pool(), job_id).await?;
        let holder = holder.ok_or_else(|| too_late(number))?;
        let killed_at = self.clock.now();
        self.stage.troupe.kill(holder.pid).await?;
        self.display.line(&format!(
            "{:<10}  kill -9 {}: this worker was writing part {number}, of which {arrived_bytes} bytes had arrived",
            "demo", holder.pid
        ));
        Ok(Kill { task_id, worker_id: holder.id, pid: holder.pid, killed_at, arrived_bytes })
    }

    /// Expires the agent's open session by moving its expiry to a minute ago.
    async fn expire_session(&mut self, agent: &str) -> Result<Uuid, Failure> {
        let open = self.open_session(agent).await?;
        let now = self.clock.now();
        let mut tx = transaction::begin(self.stage.pool()).await?;
        sessions::expire(&mut tx, open.id, now - TimeDelta::minutes(1)).await?;
        transaction::commit(tx).await?;
        // Rounded to whole days: the expiry is stored a moment before the last use.
        let days = (open.expires_at - open.used_at + TimeDelta::hours(12)).num_days();
        self.display.line(&format!(
            "{:<10}  agent {agent} is idle: its session would expire in {days} days, the demo sets the expiry to a minute ago",
            "demo"
        ));
        Ok(open.id)
    }

    async fn open_session(&self, agent: &str) -> Result<Session, Failure> {
        let filter = sessions::Filter {
            campaign_id: Some(self.campaign.id),
            agent: Some(agent),
            open_only: true,
            ..sessions::Filter::default()
        };
        let open =
            sessions::list(self.stage.pool(), filter, crate::domain::Page::default()).await?;
        let open = open.into_iter().next();
        open.ok_or_else(|| Failure::failed(anyhow!("agent {agent} has no open session")))
    }

    /// Waits for summaries that are prepared in the background. Until they are stored, the ledger and its session
    /// disagree about the tokens.
    async fn wait_for_summaries(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + SILENCE_LIMIT;
        while self.n_summaries_under_way().await? > 0 && Instant::now() < deadline {
            self.stage.troupe.check()?;
            sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn n_summaries_under_way(&self) -> Result<usize, Failure> {
        let kind = Some(CompactSession::KIND.to_owned());
        let filter = admin::JobFilter { kind, ..admin::JobFilter::default() };
        let jobs = admin::list_jobs(self.stage.pool(), &filter).await?;
        // Counts ready and running jobs only: a postponed job makes no call now.
        Ok(jobs.iter().filter(|job| matches!(job.state.as_str(), "ready" | "running")).count())
    }

    /// Follows the feed until `reached` returns true.
    async fn until(&mut self, reached: impl Fn(&DemoTasks) -> bool) -> Result<(), Failure> {
        let mut last_news = Instant::now();
        loop {
            for event in self.watch.next_events(self.stage.pool()).await? {
                last_news = Instant::now();
                if let Some(id) = event.task_id.filter(|id| !self.cast.knows(*id)) {
                    self.cast.add_task(&tasks::get(self.stage.pool(), id).await?);
                }
                if let Some(line) = self.cast.apply_event(&event) {
                    self.display.line(&line);
                }
            }
            self.display.status(&self.cast.status());
            if let Some((label, why)) = self.cast.failed() {
                return Err(Failure::failed(anyhow!("{label} failed: {why}")));
            }
            if reached(&self.cast) {
                return Ok(());
            }
            self.stage.troupe.check()?;
            self.stage.troupe.check_progress(last_news, SILENCE_LIMIT)?;
            sleep(PAUSE).await;
        }
    }
}

/// Sorts tasks by the order in which they were added.
pub(super) fn sort_by_id(mut tasks: Vec<Task>) -> Vec<Task> {
    tasks.sort_by_key(|task| task.id);
    tasks
}

fn too_late(number: usize) -> Failure {
    let error =
        anyhow!("part {number} was done before its worker could be killed; run the demo again");
    Failure::new(Exit::Unavailable, error)
}
