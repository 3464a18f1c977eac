//! Obstacles of tasks that a person can remove.

use uuid::Uuid;

use super::{State, TaskFacts};
use crate::{
    domain::{amount::Refusal, campaigns::Status},
    queue::admin::{Cause, HoldOf},
};

/// An obstacle that a person can remove, so that the task goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    CampaignPause {
        campaign_id: Uuid,
    },
    /// Without a campaign: in all campaigns.
    AgentPause {
        agent: String,
        campaign_id: Option<Uuid>,
    },
    FlowPause {
        flow_id: Uuid,
    },
    /// The job of the task, or the job ahead in its conversation, is held.
    HeldJob {
        job_id: i64,
    },
    HeldLane {
        lane: String,
    },
    Budget(Refusal),
    /// Its earliest start, or its next call of a provider that it waits for, is not reached.
    Later {
        job_id: i64,
    },
}

impl TaskFacts {
    /// Lists what the explanation names, in its order.
    pub(super) fn obstacles(&self) -> Vec<Obstacle> {
        if self.task.state == State::Failed {
            let refusal = self.budget_refusal.as_ref().and_then(|(_, outlook)| outlook.refusal());
            return refusal.into_iter().cloned().map(Obstacle::Budget).collect();
        }
        let is_open = matches!(self.task.state, State::Queued | State::Running);
        let waits_for_others = self.waiting.as_ref().is_some_and(|waiting| waiting.n_open() > 0);
        let waits_for_batch = self.batch_wait.is_some();
        if !is_open || waits_for_others || waits_for_batch || self.job.state == "running" {
            return Vec::new();
        }
        if let Some(flow_id) = self.paused_flow.filter(|_| self.task.started_at.is_none()) {
            return vec![Obstacle::FlowPause { flow_id }];
        }
        if self.campaign.status == Status::Paused {
            return vec![Obstacle::CampaignPause { campaign_id: self.campaign.id }];
        }
        if !self.pauses.is_empty() {
            return self.agent_pauses();
        }
        let refusal = match &self.budget_wait {
            Some(wait) => wait.as_ref(),
            None => self.spent.as_ref(),
        };
        if let (None, Some(head), Cause::Behind { .. }) = (refusal, &self.head, &self.job.cause) {
            return head.obstacles.clone();
        }
        match (refusal, &self.job.cause) {
            (Some(refusal), _) => vec![Obstacle::Budget(refusal.clone())],
            (None, Cause::Hold { of: HoldOf::Job(id), .. }) => {
                vec![Obstacle::HeldJob { job_id: *id }]
            }
            (None, Cause::Hold { of: HoldOf::Lane(lane), .. }) => {
                vec![Obstacle::HeldLane { lane: lane.clone() }]
            }
            // A retry calls its provider before the next try.
            (None, Cause::Snooze) if self.busy_since.is_some() && !self.is_model_busy => {
                vec![Obstacle::Later { job_id: self.job.job_id }]
            }
            (None, Cause::Later) => vec![Obstacle::Later { job_id: self.job.job_id }],
            (None, _) => Vec::new(),
        }
    }

    fn agent_pauses(&self) -> Vec<Obstacle> {
        let of = |pause: &super::Pause| Obstacle::AgentPause {
            agent: pause.agent.clone(),
            campaign_id: pause.campaign_id,
        };
        self.pauses.iter().map(of).collect()
    }
}
