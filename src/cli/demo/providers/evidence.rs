//! Rows of the tables when the demo has ended.

use sqlx::PgPool;
use uuid::Uuid;

use super::script::AGENTS;
use crate::{
    cli::{
        Failure,
        demo::{
            evidence::{ALL, Work, jobs_left},
            sequence::sort_by_id,
        },
    },
    domain::{
        Page,
        tasks::{self, TaskFilter},
        turns,
        usage::{self, Total},
    },
};

pub(super) struct Evidence {
    /// The tasks of each agent in the order of the rounds, with their turns.
    pub(super) agents: Vec<Vec<Work>>,
    pub(super) ledger: Vec<Total>,
    /// Count of unfinished jobs of turns, and of dead letters.
    pub(super) n_jobs_left: usize,
}

impl Evidence {
    pub(super) async fn read(
        pool: &PgPool,
        campaign_id: Uuid,
        n_agents: usize,
    ) -> Result<Self, Failure> {
        let mut conn = pool.acquire().await.map_err(|error| Failure::failed(error.into()))?;
        let filter = TaskFilter { campaign_id: Some(campaign_id), ..TaskFilter::default() };
        let page = Page { after: None, limit: ALL };
        let mut agents: Vec<Vec<Work>> = (0..n_agents).map(|_| Vec::new()).collect();
        for task in sort_by_id(tasks::list(&mut conn, &filter, page).await?) {
            let turns = turns::of_task(&mut *conn, task.id).await?;
            let place = AGENTS.iter().position(|agent| *agent == task.agent);
            if let Some(works) = place.and_then(|place| agents.get_mut(place)) {
                works.push(Work { task, turns });
            }
        }
        Ok(Self {
            agents,
            ledger: usage::totals(&mut *conn, campaign_id).await?,
            n_jobs_left: jobs_left(&mut conn, campaign_id).await?,
        })
    }
}
