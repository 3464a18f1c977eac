//! Options that select tasks.

use clap::{Args, ValueEnum};
use uuid::Uuid;

use crate::{
    cli::{
        Context, Failure,
        args::{InCampaign, LabelFilter},
        server::Server,
        words::{Moment, parse_moment},
    },
    domain::tasks::{State, TaskFilter},
    operations::ListTasks,
};

#[derive(Debug, Args)]
pub(super) struct FilterFlags {
    #[command(flatten)]
    campaign: InCampaign,
    /// Only tasks of this agent. curator_2 is instance 2 of curator.
    #[arg(long)]
    agent: Option<String>,
    /// Only tasks of this instance.
    #[arg(long)]
    instance: Option<String>,
    /// Only tasks in this state.
    #[arg(long)]
    state: Option<StateName>,
    /// Only tasks that were added since then: 2026-11-23T08:00:00Z, or 24h for a day ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    since: Option<Moment>,
    /// Only tasks that were added before then: 2026-11-23T08:00:00Z, or 24h for a day ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    until: Option<Moment>,
    /// Only tasks that ended since then: 2026-11-23T08:00:00Z, or 24h for a day ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    ended_since: Option<Moment>,
    /// Only tasks whose prompt contains this text; upper and lower case are equal.
    #[arg(long)]
    text: Option<String>,
    #[command(flatten)]
    labels: LabelFilter,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateName {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

impl FilterFlags {
    pub(super) async fn campaign_id(
        &self,
        context: &Context,
        server: &Server,
    ) -> Result<Option<Uuid>, Failure> {
        self.campaign.id_if_given(context, server).await
    }

    pub(super) fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// Returns true if no option selects tasks. DALSEGNO_CAMPAIGN alone does not count.
    pub(super) fn is_empty(&self) -> bool {
        let Self { campaign, agent, instance, state, since, until, ended_since, text, labels } =
            self;
        let is_given = campaign.is_given() || agent.is_some() || instance.is_some();
        let is_in_time = since.is_some() || until.is_some() || ended_since.is_some();
        let is_narrowed = state.is_some() || is_in_time || text.is_some();
        !is_given && !is_narrowed && labels.is_empty()
    }

    /// Refuses times that would mean other tasks when the command is repeated.
    pub(super) fn check_times(&self, context: &Context) -> Result<(), Failure> {
        let Self { since, until, ended_since, .. } = *self;
        let times = [("--since", since), ("--until", until), ("--ended-since", ended_since)];
        for (flag, moment) in times {
            if let Some(Moment { at, is_relative: true }) = moment {
                context.refuse_relative(flag, flag, at)?;
            }
        }
        Ok(())
    }

    /// Returns the filter of an action on many tasks.
    pub(super) fn to_filter(&self, campaign_id: Option<Uuid>) -> TaskFilter {
        let (tags, metadata) = self.labels.tags_and_metadata();
        TaskFilter {
            campaign_id,
            except_campaign_id: None,
            agent: self.agent.clone(),
            instance: self.instance.clone(),
            state: self.state.map(State::from),
            created_before: self.until.map(|until| until.at),
            created_after: self.since.map(|since| since.at),
            ended_after: self.ended_since.map(|since| since.at),
            text: self.text.clone(),
            tags,
            metadata,
        }
    }

    pub(super) fn page(
        &self,
        campaign_id: Option<Uuid>,
        cursor: Option<Uuid>,
        limit: Option<i64>,
    ) -> ListTasks {
        ListTasks {
            campaign_id,
            agent: self.agent.clone(),
            instance: self.instance.clone(),
            state: self.state.map(State::from),
            created_after: self.since.map(|since| since.at),
            created_before: self.until.map(|until| until.at),
            ended_after: self.ended_since.map(|since| since.at),
            text: self.text.clone(),
            tags: self.labels.tags(),
            metadata: self.labels.metadata(),
            cursor,
            limit,
        }
    }
}

impl From<StateName> for State {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Queued => Self::Queued,
            StateName::Running => Self::Running,
            StateName::Done => Self::Done,
            StateName::Failed => Self::Failed,
            StateName::Cancelled => Self::Cancelled,
        }
    }
}
