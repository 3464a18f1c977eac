//! The rounds of the demo: what the agents are told, and which calls fail.

use std::time::Duration;

use anyhow::anyhow;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{
    cast::{Cast, has_server},
    script::{self, AGENTS},
};
use crate::{
    cli::{
        Failure,
        demo::{
            display::{Display, bar},
            setup::DemoSetup,
            watch::Watch,
        },
    },
    clock::Clock,
    domain::{
        agents::Library,
        amount::Limit,
        campaigns::{self, Campaign},
        failovers,
        feed::Event,
        tasks, transaction,
    },
};

/// Pause between two polls.
const PAUSE: Duration = Duration::from_millis(100);
/// Time without an event after which the demo gives up.
const SILENCE_LIMIT: Duration = Duration::from_secs(90);
/// Longest line of the display, behind the time.
const LINE_MAX_CHARS: usize = 70;

pub(super) struct Sequence<'a> {
    stage: &'a mut DemoSetup,
    display: &'a mut Display,
    cast: &'a Cast,
    clock: &'a dyn Clock,
    library: Library,
    campaign: Campaign,
    watch: Watch,
    /// Tasks that have ended.
    n_done: usize,
}

impl<'a> Sequence<'a> {
    pub(super) async fn begin(
        stage: &'a mut DemoSetup,
        display: &'a mut Display,
        cast: &'a Cast,
        clock: &'a dyn Clock,
    ) -> Result<Self, Failure> {
        let library = Library::open(&stage.settings.config.agents)?;
        let new = campaigns::New {
            name: script::CAMPAIGN,
            brief: script::BRIEF,
            client_context: None,
            limit: Limit::default(),
        };
        let campaign = stage.create_campaign(&new, clock.now()).await?;
        let watch = Watch::of(campaign.id);
        Ok(Self { stage, display, cast, clock, library, campaign, watch, n_done: 0 })
    }

    /// Plays all rounds, and returns the id of the campaign.
    pub(super) async fn perform(mut self) -> Result<Uuid, Failure> {
        let n_models = self.cast.models.len();
        for round in 0..n_models {
            let failures = if round == 0 { "" } else { ", and its model fails" };
            self.display.line(&format!("round {}: each agent is told a fact{failures}", round + 1));
            let prompts = (0..n_models).map(|agent| self.plan(agent, round)).collect();
            self.run_round(prompts).await?;
        }
        // A rest lasts agents.fallback_secs, a quarter of an hour by default.
        let mut tx = transaction::begin(self.stage.pool()).await?;
        failovers::remove_of_campaign(&mut *tx, self.campaign.id).await?;
        transaction::commit(tx).await?;
        self.display.line("the failed models may be used again: the agents return");
        self.run_round(vec![script::last_prompt(); n_models]).await?;
        self.display.end();
        Ok(self.campaign.id)
    }

    /// Lets the current model of an agent fail, and returns the prompt of the round.
    fn plan(&self, agent: usize, round: usize) -> String {
        let models = &self.cast.models;
        let failing = (round > 0).then(|| &models[(agent + round - 1) % models.len()]);
        if let Some(server) = failing.and_then(|model| self.cast.server(model.provider)) {
            server.fail_call_with(script::fact(agent, round));
        }
        script::prompt(agent, round, failing.is_some_and(|model| !has_server(model)))
    }

    /// Gives each agent its prompt, and waits until all have answered.
    async fn run_round(&mut self, prompts: Vec<String>) -> Result<(), Failure> {
        let catalogue = self.library.current();
        let config = &self.stage.settings.config.tasks;
        let mut tx = transaction::begin(self.stage.pool()).await?;
        for (agent, prompt) in AGENTS.into_iter().zip(&prompts) {
            let new = tasks::New {
                added_by: Some("demo"),
                ..tasks::New::for_agent(
                    self.campaign.id,
                    catalogue.agent(agent).map_err(|error| Failure::failed(error.into()))?,
                    prompt,
                )
            };
            tasks::add(&mut tx, config, &new, self.clock.now())
                .await
                .map_err(|error| Failure::failed(error.into()))?;
        }
        transaction::commit(tx).await?;
        let all = self.n_done + prompts.len();
        self.until_done(all).await
    }

    async fn until_done(&mut self, n_tasks: usize) -> Result<(), Failure> {
        let n_models = self.cast.models.len();
        let mut last_news = Instant::now();
        while self.n_done < n_tasks {
            for event in self.watch.next_events(self.stage.pool()).await? {
                last_news = Instant::now();
                self.apply(&event)?;
            }
            let all = n_models * (n_models + 1);
            self.display.status(&format!(
                "{} {} of {all} tasks",
                bar(self.n_done, all),
                self.n_done
            ));
            self.stage.troupe.check()?;
            self.stage.troupe.check_progress(last_news, SILENCE_LIMIT)?;
            sleep(PAUSE).await;
        }
        Ok(())
    }

    fn apply(&mut self, event: &Event) -> Result<(), Failure> {
        let agent = event.agent.as_deref().unwrap_or("an agent");
        let data = &event.data;
        match event.kind.as_str() {
            "turn.done" => self.n_done += 1,
            "conversation.moved" => self.display.line(&cut(&moved(agent, data))),
            "task.failed" | "task.cancelled" | "budget.refused" => {
                let why = data["error"].as_str().unwrap_or("it was cancelled");
                return Err(Failure::failed(anyhow!("a task of {agent} failed: {why}")));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Describes a move from its feed event.
fn moved(agent: &str, data: &Value) -> String {
    let provider = |entry: &Value| {
        let entry = entry.as_str().unwrap_or_default();
        entry.split('/').next().unwrap_or_default().to_owned()
    };
    let to = provider(&data["to"]);
    let last = data["skipped"].as_array().and_then(|skipped| skipped.last());
    match last {
        None => format!("{agent}  returns to {to}"),
        Some(last) => {
            let because = last["because"].as_str().unwrap_or_default();
            format!("{agent}  {} → {to}: {because}", provider(&last["entry"]))
        }
    }
}

/// Cuts a line to the width of a terminal.
pub(super) fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
