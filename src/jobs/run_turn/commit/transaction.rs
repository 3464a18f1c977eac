//! Transaction B: all results of a turn, and the end of its job, in one commit.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use tokio::time::timeout;

use crate::{
    causes::causes,
    context::Pressure,
    domain::{
        batches, busy_models,
        compactions::{self, Cause},
        context_texts::StoringCall,
        credentials::{self, PausedCredential},
        manifests,
        mentions::{self, AgentAnswer, HandedOn},
        messages,
        task_files::{self, NewFiles},
        tasks::{self, RunTurn},
        text,
        turn_phases::{Record, TurnEnd},
    },
    jobs::{
        busy::wait_cause,
        run_turn::{
            commit::{
                busy,
                calibration::{self, Lesson},
                contexts::Contexts,
                entries, failover,
                fate::Fate,
                feed_event, ledger, output_files, provider_session,
                turn::Turn,
            },
            crash_points::CrashPoint,
            error::Error,
            gate::budget,
            load::assignment::Assignment,
        },
        write_attempts::WriteAttempts,
    },
    queue::{End, HoldUntil, Job as _, WaitCause},
};

/// Longest wait for the texts of contexts.
const TEXTS_WAIT: Duration = Duration::from_secs(2);

impl Turn<'_> {
    /// Writes the end of the turn. `None`: the turn has ended, and its job continues in this run.
    pub async fn end(&self, fate: &Fate) -> Result<Option<End>, Error> {
        let new = entries::entries(self, fate);
        let learnt = calibration::learn(self);
        let contexts = Contexts::of(self, fate, &new).map_err(Error::undone)?;
        let files = output_files::of_call(self.called, &self.services.output_files);
        self.log_problems(&files);
        self.store_texts(&contexts).await;
        // The answer was paid for. A repetition is safe: a commit that did succeed has ended the lease. While the database is unreachable,
        // attempts continue until the lease expires, so that a failover loses no answer. Other errors do not pass by waiting.
        let mut attempts = WriteAttempts::new();
        loop {
            match self.try_end(fate, (&new, &contexts, &files), &learnt).await {
                Err(error) if error.can_retry_write(self.run, attempts.has_more()) => {
                    tracing::warn!(
                        error = causes(&error),
                        "cannot write the end of a turn, trying again"
                    );
                    attempts.wait().await;
                }
                ended => return ended,
            }
        }
    }

    /// Stores the texts of the contexts. An answer that was paid for counts more than its record: a failure is only logged, and the answer
    /// waits for a moment only.
    async fn store_texts(&self, contexts: &Contexts) {
        let (pool, begun) = (self.run.pool(), &self.opened.begun);
        let (session_id, turn, lease) = (begun.session_id, begun.turn, begun.lease);
        let storing = StoringCall { session_id, turn: Some((turn, lease)) };
        let stored = self.services.stored_texts.store(pool, &storing, &contexts.texts);
        let error = match timeout(TEXTS_WAIT, stored).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => causes(&error),
            Err(_) => format!("the database did not answer within {} s", TEXTS_WAIT.as_secs()),
        };
        tracing::warn!(
            session.id = %session_id,
            turn,
            error,
            "cannot store the context of a turn, so it cannot be shown later"
        );
    }

    fn log_problems(&self, files: &NewFiles<'_>) {
        for (file, reason) in files.problems() {
            tracing::warn!(task.id = %self.assignment.task.id, file, reason, "cannot store an output file of a turn");
        }
    }

    async fn try_end(
        &self,
        fate: &Fate,
        stored: (&[messages::New], &Contexts, &NewFiles<'_>),
        learnt: &Lesson,
    ) -> Result<Option<End>, Error> {
        let mut tx = self.run.pool().begin().await.map_err(Error::undone)?;
        let until = match self.write(&mut tx, fate, stored, learnt).await {
            Ok(until) => until,
            Err(error) => {
                tx.rollback().await.map_err(Error::undone)?;
                return Err(error);
            }
        };
        let run = self.run;
        let ended = match fate {
            Fate::Done => run.commit(tx).await,
            Fate::Cancelled => run.commit_cancelled(tx).await,
            Fate::GivenBack => run.commit_given_back(tx).await,
            Fate::Again { why, after, .. } => {
                run.commit_retry(tx, RunTurn::policy().backoff, *after, why).await
            }
            Fate::PutOff { why, after } => {
                let cause = self.called.result.as_ref().err().and_then(wait_cause);
                run.commit_snooze(tx, HoldUntil::After(*after), cause, why).await
            }
            Fate::WaitsForBudget { refusal, .. } => {
                let cause = Some(WaitCause::Limit);
                run.commit_snooze(tx, until, cause, &refusal.describe_wait()).await
            }
            Fate::Correction { fault } => {
                run.commit_snooze(tx, HoldUntil::After(Duration::ZERO), None, fault).await
            }
            Fate::Failed { why, .. } | Fate::Mismatch { why } => run.commit_failure(tx, why).await,
            Fate::NoRoom { .. } | Fate::LeaseLost => {
                tx.commit().await.map_err(Error::undone)?;
                return Ok(None);
            }
        }?;
        if fate.is_answered() {
            let route = &self.assignment.route;
            self.services.calibrations.learn(
                &route.provider_name,
                &route.model,
                learnt.calibration,
            );
        }
        Ok(Some(ended))
    }

    /// Writes everything but the end of the job. Returns the end of the wait for a budget.
    async fn write(
        &self,
        conn: &mut PgConnection,
        fate: &Fate,
        (new, contexts, files): (&[messages::New], &Contexts, &NewFiles<'_>),
        learnt: &Lesson,
    ) -> Result<HoldUntil, Error> {
        let now = self.services.clock.now();
        let lines =
            ledger::all_lines(self.services, self.assignment, self.opened, self.called, fate);
        let last = contexts.last.as_ref();
        let manifest = last.map(|record| ledger::manifest(self.opened, self.called, record));
        let events = feed_event::events(self, fate, files);
        let record = Record { manifest: manifest.as_ref(), events: &events };
        task_files::store_contents(&mut *conn, files, now).await?;
        if let Some(paused) = self.paused_credential(fate, now) {
            credentials::pause(&mut *conn, &self.assignment.route.provider_name, &paused).await?;
        }
        let handed_on = self.add_mentioned_tasks(&mut *conn, fate, now).await?;
        failover::store_state(&mut *conn, self.assignment, fate, &self.called.result, now).await?;
        let ending =
            TurnEnd { turn: &self.opened.begun, calls: &lines, messages: new, record, now };
        self.end_turn(&mut *conn, &ending, fate, (learnt, handed_on.as_ref())).await?;
        if let Some(call) = self.opened.batch_call {
            let begun = &self.opened.begun;
            if call.is_given_up {
                Box::pin(batches::give_up(&mut *conn, begun.session_id, begun.turn)).await?;
            } else {
                batches::remove(&mut *conn, call.id).await?;
            }
        }
        if !files.is_empty() {
            let written = (self.opened.begun.task_id, self.opened.begun.turn);
            task_files::record(&mut *conn, written, files, now).await?;
        }
        self.note_wait(&mut *conn, fate, now).await?;
        self.record_rounds(&mut *conn, contexts, now).await?;
        self.prepare_ahead(&mut *conn, fate, learnt).await?;
        let until = match fate {
            Fate::WaitsForBudget { refusal, .. } => {
                let job_id = self.run.job_id();
                budget::begin_wait(&mut *conn, &self.assignment.task, job_id, refusal, now).await?
            }
            _ => None,
        };
        self.services.crash_points.pass(CrashPoint::BeforeJobEnd).map_err(Error::undone)?;
        Ok(until.unwrap_or(HoldUntil::After(Duration::ZERO)))
    }

    /// Records that the task waits for its provider, or that the provider answers again.
    async fn note_wait(
        &self,
        conn: &mut PgConnection,
        fate: &Fate,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let (assignment, result) = (self.assignment, &self.called.result);
        match fate {
            Fate::PutOff { after, .. } if busy::is_provider_wait(fate, result.as_ref().err()) => {
                let until = now + TimeDelta::from_std(*after).unwrap_or(TimeDelta::days(1));
                tasks::wait_for_provider(conn, assignment.task.id, until, now).await?;
            }
            fate if fate.is_answered() => {
                if let Some(busy) = &assignment.busy {
                    let (provider, model) = (&busy.provider, &busy.model);
                    let called_at = self.called.called_at;
                    busy_models::record_answer(&mut *conn, provider, model, called_at).await?;
                }
                if assignment.busy_since.is_some() {
                    tasks::end_provider_wait(conn, assignment.task.id).await?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Stores the manifests of the calls before the last one.
    async fn record_rounds(
        &self,
        conn: &mut PgConnection,
        contexts: &Contexts,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let calls = self.called.rounds.calls.iter().enumerate();
        for (asked, record) in calls.zip(&contexts.rounds) {
            let new = ledger::manifest_of_round(self.opened, asked, record);
            manifests::insert(&mut *conn, &new, now).await.map_err(Error::undone)?;
        }
        Ok(())
    }

    /// Creates tasks for the agents that the answer mentions, if its agent may create them. Called before the end of
    /// the turn locks any row.
    async fn add_mentioned_tasks(
        &self,
        conn: &mut PgConnection,
        fate: &Fate,
        now: DateTime<Utc>,
    ) -> Result<Option<HandedOn>, Error> {
        let Assignment { task, agent, catalogue, asked_in, .. } = self.assignment;
        let (Fate::Done, Ok(outcome), Some(asked_in), true) =
            (fate, &self.called.result, *asked_in, agent.mentions)
        else {
            return Ok(None);
        };
        let spoken = AgentAnswer {
            campaign_id: task.campaign_id,
            task_id: task.id,
            asked_in,
            agent: &task.agent,
            instance: &task.instance,
            text: &text::make_storable(outcome.message.text.clone()),
        };
        let config = (&self.services.mentions, &self.services.tasks);
        mentions::add_mentioned_tasks(conn, catalogue, config, &spoken, now)
            .await
            .map_err(Error::undone)
    }

    /// Requests a summary in the background, before the next turn needs it.
    async fn prepare_ahead(
        &self,
        conn: &mut PgConnection,
        fate: &Fate,
        learnt: &Lesson,
    ) -> Result<(), Error> {
        if !fate.is_answered() {
            return Ok(());
        }
        let begun = &self.opened.begun;
        let thresholds = &self.assignment.route.thresholds;
        let pressure = self.opened.budget.pressure(learnt.context_tokens, thresholds);
        if pressure >= Pressure::Prepare && !begun.ephemeral {
            let asked = compactions::request(conn, begun.session_id, Cause::Auto).await;
            asked.map_err(Error::undone)?;
        }
        Ok(())
    }

    fn paused_credential(&self, fate: &Fate, now: DateTime<Utc>) -> Option<PausedCredential> {
        let (Fate::PutOff { .. }, Err(error)) = (fate, &self.called.result) else {
            return None;
        };
        provider_session::pause_credential(
            self.opened,
            error,
            &text::make_storable(error.to_string()),
            now,
        )
    }
}
