//! Everything about a task that does not depend on its session: who is asked, with which words, at what price.

use std::sync::Arc;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{Error, Refused};
use crate::{
    domain::{
        agents::{Agent, Skill},
        amount::Limit,
        campaigns::Campaign,
        tasks::Task,
        turns,
    },
    jobs::{Services, route::Route},
};

pub(super) struct Assignment<'a> {
    pub(super) task: Task,
    pub(super) agent: Arc<Agent>,
    pub(super) skills: Vec<Arc<Skill>>,
    pub(super) campaign: Campaign,
    /// Whether anything limits what the turn may cost.
    pub(super) is_limited: bool,
    pub(super) route: Route<'a>,
}

/// The task of a job, if it still has to be done, and its campaign.
pub(super) async fn read(pool: &PgPool, job_id: i64) -> Result<(Task, Campaign, Limit), Error> {
    let wanted = turns::wanted(pool, job_id).await?;
    match wanted.0.ended_at {
        Some(_) => Err(Error::Ended),
        None => Ok(wanted),
    }
}

impl<'a> Assignment<'a> {
    /// Asks the provider for the model's window where nobody knows it yet.
    pub(super) async fn of(
        services: &'a Services,
        task: Task,
        campaign: Campaign,
        limit: Limit,
        cancel: &CancellationToken,
    ) -> Result<Self, (Task, Refused)> {
        let catalogue = services.library.current();
        let found = catalogue.agent(&task.agent).map(Arc::clone);
        let routed = match found {
            Ok(agent) => {
                Route::of_agent(services, &agent, cancel).await.map(|route| (agent, route))
            }
            Err(unknown) => Err(unknown.to_string()),
        };
        let (agent, route) = match routed {
            Ok(routed) => routed,
            Err(why) => return Err((task, Refused::for_good(why))),
        };
        let limits = [limit.micros, limit.tokens, task.budget_micros, task.budget_tokens];
        Ok(Self {
            skills: catalogue.skills_of(&agent),
            is_limited: limits.iter().any(Option::is_some),
            task,
            agent,
            campaign,
            route,
        })
    }
}
