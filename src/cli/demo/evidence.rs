//! Rows of the tables when the demo has ended: the only source of its report.

use std::collections::BTreeMap;

use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{
    demo_tasks,
    script::WRITERS,
    sequence::{DemoFaults, Kill, sort_by_id},
};
use crate::{
    cli::Failure,
    domain::{
        Page,
        compactions::{self, Compaction},
        manifests::{self, Manifest},
        messages::{self, Span, StoredMessage},
        posts::{self, ListDirection, Post, Viewer},
        sessions::{self, Session},
        tasks::{self, RunTurn, Task, TaskFilter},
        turns::{self, Turn},
        usage::{self, Total},
    },
    queue::{
        Job as _,
        admin::{self, JobFilter, RunRecord, WorkerView},
    },
    transcript::Role,
};

/// Page size, larger than any list of the demo.
pub(super) const ALL: i64 = 1000;

pub(super) struct Evidence {
    /// In the order in which they were added.
    pub(super) tasks: Vec<Work>,
    /// In the order in which they were opened.
    pub(super) sessions: Vec<Conversation>,
    /// In the order in which they were committed.
    pub(super) board: Vec<Post>,
    pub(super) ledger: Vec<Total>,
    pub(super) kill: Kill,
    /// Ended attempts of the job whose worker was killed, in order.
    pub(super) runs: Vec<RunRecord>,
    pub(super) workers: Vec<WorkerView>,
    /// Count of unfinished jobs of turns, and of dead letters.
    pub(super) n_jobs_left: usize,
    pub(super) expired: Uuid,
}

pub(super) struct Work {
    pub(super) task: Task,
    /// Its attempts in order.
    pub(super) turns: Vec<Turn>,
}

pub(super) struct Conversation {
    pub(super) session: Session,
    pub(super) messages: Vec<StoredMessage>,
    pub(super) compactions: Vec<Compaction>,
    pub(super) manifests: Vec<Manifest>,
}

impl Evidence {
    pub(super) async fn read(pool: &PgPool, played: &DemoFaults) -> Result<Self, Failure> {
        let mut conn = pool.acquire().await.map_err(|error| Failure::failed(error.into()))?;
        let campaign_id = Some(played.campaign.id);
        let page = Page { after: None, limit: ALL };
        let filter = TaskFilter { campaign_id, ..TaskFilter::default() };
        let mut work = Vec::new();
        for task in sort_by_id(tasks::list(&mut conn, &filter, page).await?) {
            let turns = turns::of_task(&mut *conn, task.id).await?;
            work.push(Work { task, turns });
        }
        let job = work.iter().find(|work| work.task.id == played.kill.task_id);
        let mut runs = match job {
            Some(work) => admin::runs_of(&mut *conn, work.task.job_id).await?,
            None => Vec::new(),
        };
        runs.reverse();
        Ok(Self {
            tasks: work,
            sessions: conversations(&mut conn, played.campaign.id).await?,
            board: posts::list_page(
                &mut *conn,
                played.campaign.id,
                Viewer::All,
                ListDirection::After(0),
                ALL,
            )
            .await?,
            ledger: usage::totals(&mut *conn, played.campaign.id).await?,
            kill: played.kill.clone(),
            runs,
            workers: admin::list_workers(&mut *conn, None, ALL).await?,
            n_jobs_left: jobs_left(&mut conn, played.campaign.id).await?,
            expired: played.expired,
        })
    }

    pub(super) fn of_agent<'a>(&'a self, agent: &'a str) -> impl Iterator<Item = &'a Work> {
        self.tasks.iter().filter(move |work| work.task.agent == agent)
    }

    /// Returns the parts of the series by number, each with its writer's task.
    pub(super) fn parts(&self) -> BTreeMap<usize, &Work> {
        let of_writer = |writer| {
            let works = (1..).zip(self.of_agent(writer));
            works.filter_map(move |(nth, work)| {
                Some((demo_tasks::part_of_writer(writer, nth)?, work))
            })
        };
        WRITERS.into_iter().flat_map(of_writer).collect()
    }

    pub(super) fn sessions_of<'a>(
        &'a self,
        agent: &'a str,
    ) -> impl Iterator<Item = &'a Conversation> {
        self.sessions.iter().filter(move |conversation| conversation.session.agent == agent)
    }

    pub(super) fn session(&self, id: Uuid) -> Option<&Conversation> {
        self.sessions.iter().find(|conversation| conversation.session.id == id)
    }

    /// Returns an agent's messages over all its sessions, by place. A successor keeps the places of inherited messages,
    /// so each place is listed once.
    pub(super) fn transcript<'a>(&'a self, agent: &'a str) -> Vec<&'a StoredMessage> {
        let all = self.sessions_of(agent).flat_map(|conversation| &conversation.messages);
        let by_place: BTreeMap<i64, &StoredMessage> =
            all.map(|message| (message.seq, message)).collect();
        by_place.into_values().collect()
    }

    pub(super) fn pid_of(&self, worker_id: Option<Uuid>) -> Option<i32> {
        let worker = self.workers.iter().find(|worker| Some(worker.id) == worker_id);
        worker.map(|worker| worker.pid)
    }
}

impl Conversation {
    /// Returns the places of the posts that the session was shown, in the order of its transcript.
    pub(super) fn shown(&self) -> Vec<i64> {
        let entries = self.messages.iter().filter(|m| m.message.role == Role::Posts);
        let posts = entries.flat_map(|entry| {
            let entry: Value = serde_json::from_str(&entry.message.text).unwrap_or_default();
            entry["posts"].as_array().cloned().unwrap_or_default()
        });
        posts.filter_map(|post| post["seq"].as_i64()).collect()
    }
}

async fn conversations(
    conn: &mut PgConnection,
    campaign_id: Uuid,
) -> Result<Vec<Conversation>, Failure> {
    let filter = sessions::Filter { campaign_id: Some(campaign_id), ..sessions::Filter::default() };
    let page = Page { after: None, limit: ALL };
    let mut sessions = sessions::list(&mut *conn, filter, page).await?;
    sessions.reverse();
    let mut conversations = Vec::new();
    for session in sessions {
        conversations.push(Conversation {
            messages: messages::list(&mut *conn, session.id, Span::all()).await?,
            compactions: compactions::list(&mut *conn, session.id).await?,
            manifests: manifests::list(&mut *conn, session.id, 0, ALL).await?,
            session,
        });
    }
    Ok(conversations)
}

/// Counts unfinished turns and dead letters of the campaign: the database may hold others. A prepared summary without a later turn is not unfinished work.
pub(super) async fn jobs_left(
    conn: &mut PgConnection,
    campaign_id: Uuid,
) -> Result<usize, Failure> {
    let group_key = Some(campaign_id.to_string());
    let turns = JobFilter {
        group_key: group_key.clone(),
        kind: Some(RunTurn::KIND.to_owned()),
        limit: Some(ALL),
        ..JobFilter::default()
    };
    let dead = JobFilter {
        group_key,
        state: Some("dead".to_owned()),
        limit: Some(ALL),
        ..JobFilter::default()
    };
    let turns = admin::list_jobs(&mut *conn, &turns).await?;
    let dead = admin::list_jobs(&mut *conn, &dead).await?;
    Ok(turns.len() + dead.len())
}
