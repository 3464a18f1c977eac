//! Everything about a task that does not depend on its session: who is asked, with which words, at what price.

use std::sync::Arc;

use sqlx::{PgPool, pool::PoolConnection, postgres::Postgres};
use tokio_util::sync::CancellationToken;

use super::{Error, Refused};
use crate::{
    context::{Budget, Thresholds},
    domain::{
        agents::{self, Agent, Skill},
        amount::Limit,
        campaigns::{self, Campaign},
        prices::Price,
        tasks::{self, Task},
    },
    jobs::Services,
    providers::{Options, Provider, Think},
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

/// Who answers, and with how much room.
pub(super) struct Route<'a> {
    pub(super) provider: &'a dyn Provider,
    pub(super) provider_name: &'static str,
    pub(super) model: String,
    pub(super) window_tokens: u64,
    pub(super) reserve_tokens: u64,
    pub(super) thresholds: Thresholds,
    pub(super) options: Options,
    pub(super) price: Option<&'a Price>,
}

/// The task of a job, if it still has to be done, and its campaign.
pub(super) async fn read(
    pool: &PgPool,
    job_id: i64,
) -> Result<(PoolConnection<Postgres>, Task, Campaign, Limit), Error> {
    let mut conn = pool.acquire().await.map_err(Error::undone)?;
    let task = tasks::by_job(&mut *conn, job_id).await?;
    if task.ended_at.is_some() {
        return Err(Error::Ended);
    }
    let (campaign, limit) =
        campaigns::of_turn(&mut *conn, task.campaign_id).await.map_err(Error::undone)?;
    Ok((conn, task, campaign, limit))
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
            Ok(agent) => route(services, &agent, cancel).await.map(|route| (agent, route)),
            Err(unknown) => Err(Refused::for_good(unknown.to_string())),
        };
        let (agent, route) = match routed {
            Ok(routed) => routed,
            Err(refused) => return Err((task, refused)),
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

async fn route<'a>(
    services: &'a Services,
    agent: &Agent,
    cancel: &CancellationToken,
) -> Result<Route<'a>, Refused> {
    let (provider, model) = services.route(agent);
    let provider_name = provider.as_str();
    let model = model.ok_or_else(|| {
        Refused::for_good(format!(
            "the file of agent `{}` names the provider {provider_name} and no model: add `model:` to it",
            agent.name
        ))
    })?;
    let known = services.providers.window_tokens(provider_name, &model, cancel).await;
    let (Some(provider), Some(known)) = (services.providers.named(provider_name), known) else {
        return Err(Refused::for_good(format!(
            "agent `{}` runs on {provider_name}, which this version does not have: name another provider in its file",
            agent.name
        )));
    };
    // The agent may want less of the window than there is, never more.
    let wanted = agent.window_tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let window_tokens = wanted.map_or(u64::from(known), |wanted| wanted.min(u64::from(known)));
    let reserve = agent.reserve_tokens.and_then(|tokens| u64::try_from(tokens).ok());
    Ok(Route {
        provider,
        provider_name,
        window_tokens,
        reserve_tokens: reserve.unwrap_or_else(|| Budget::default_reserve(window_tokens)),
        thresholds: thresholds(agent)?,
        options: options(&agent.options),
        price: services.prices.of(provider_name, &model),
        model,
    })
}

fn thresholds(agent: &Agent) -> Result<Thresholds, Refused> {
    let usual = Thresholds::default();
    let percent =
        |own: Option<i64>, usual| own.and_then(|own| u64::try_from(own).ok()).unwrap_or(usual);
    let prepare = percent(agent.prepare_percent, usual.prepare_percent());
    let apply = percent(agent.apply_percent, usual.apply_percent());
    Thresholds::new(prepare, apply).map_err(|error| Refused::for_good(error.to_string()))
}

fn options(options: &agents::Options) -> Options {
    Options {
        temperature: options.temperature.map(|value| value as f32),
        top_p: options.top_p.map(|value| value as f32),
        seed: options.seed,
        think: options.think.map(|think| match think {
            agents::Think::Off => Think::Off,
            agents::Think::On => Think::On,
            agents::Think::Low => Think::Low,
            agents::Think::Medium => Think::Medium,
            agents::Think::High => Think::High,
        }),
        ..Options::default()
    }
}
