//! Handler that reads facts about a user from the requests of a session.
//!
//! ```text
//! unread requests of people ──▶ as many as fit ──▶ ask · judge · ask once more ──▶ one commit: facts · the record of the
//!                                                                                  reading · the job's end, or the next job
//! ```
//!
//! Invariants:
//! - No transaction is open while a model reads. Its cost is in the ledger before its answer is judged.
//! - Facts, the place up to which the session was read, and the end of the job are one commit under the job's lease. A
//!   worker that dies has written none of it, and requests that were read are skipped by the next run.
//! - A provider that fails for now uses up an attempt of the job, and no stretch. After the last attempt the job is a
//!   dead letter; its retry by a person reads all of it.
//! - An invalid answer is refused with its reason, twice at most. Then the reading is recorded as refused, and the next
//!   attempt starts at the same place.
//! - A stretch whose last attempt was refused is skipped if more follows, so that one odd request does not block the
//!   rest. Otherwise a later reading of the session starts there.
//! - A stretch that no model has answered is skipped, too, and becomes a dead letter: a finished session is not read
//!   again by itself.
//! - It runs only if the configuration and the agent's file enable it when the job runs.
//!
//! Races:
//! - The session may be removed by then. The job names the tasks, which stay.
//! - The user may be forgotten, or the campaign get another user, while a model reads. The commit waits for other
//!   writers of the user's facts. Then it reads the campaign's user again, and leaves out facts that are not theirs.

mod ask;
mod stretch;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use self::{
    ask::{NoFacts, Reader, pause},
    stretch::{Request, TranscriptPart},
};
use super::{Services, route::Route, services::no_agent, write_attempts::WriteRetries};
use crate::{
    context::facts::{ExtractedFact, ExtractionResult},
    domain::{
        StatementError,
        agents::{Agent, LookupError},
        facts::{
            self, CampaignUser, ExtractFacts, Extraction, Outcome, RecordOutcome, Statement,
            StatementOrigin,
        },
        feed, memory, tasks,
    },
    queue::{self, End, HandlerResult, JobError, Run},
};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "cannot extract facts about a user: no answer of the model was valid; the last one: {0}"
    )]
    Refused(String),
}

pub(super) async fn run(job: ExtractFacts, run: Run, services: Arc<Services>) -> HandlerResult {
    let catalogue = services.library.current();
    let agent = match catalogue.agent(&job.agent) {
        Ok(agent) if agent.learns_facts && services.facts.extract => agent,
        Err(error @ LookupError::Broken { .. }) if services.facts.extract => {
            return Err(no_agent(error));
        }
        _ => return Ok(End::Done),
    };
    let user = facts::user_of(run.pool(), job.campaign_id).await.map_err(JobError::retry)?;
    let Some(user) = user else { return Ok(End::Done) };
    let route = Route::of(&services, agent, &job.provider, &job.model, run.cancel()).await;
    let route = route.map_err(JobError::fail)?;
    let unread = load_unread(run.pool(), &job, &user).await.map_err(JobError::retry)?;
    let reader = Reader { services: &services, agent, route: &route, job: &job, run: &run };
    let Some(stretch) = unread
        .and_then(|unread| unread.first_part(reader.room_tokens(), |text| reader.tokens_of(text)))
    else {
        return Ok(End::Done);
    };
    let answered = match stretch.requests.is_empty() {
        true => Ok(ExtractionResult::default()),
        false => reader.read(&stretch, &user).await?,
    };
    let reading =
        ExtractionRecord { services: &services, agent, job: &job, user: &user, stretch: &stretch };
    // The answer was paid for. A repetition is safe: a commit that did succeed has ended the lease.
    let mut retries = WriteRetries::new(run.cancel());
    loop {
        match reading.commit(&run, &answered).await {
            Err(error) if retries.wait_after(&*error.source).await => {}
            ended => return ended,
        }
    }
}

/// Returns the requests that were not read yet.
async fn load_unread(
    pool: &PgPool,
    job: &ExtractFacts,
    user: &CampaignUser,
) -> Result<Option<TranscriptPart>, StatementError> {
    let places: Vec<i64> = job.asked.iter().map(|asked| asked.seq).collect();
    let unread = facts::filter_unread(pool, job.session_id, &places).await?;
    let asked = job.asked.iter().filter(|asked| unread.contains(&asked.seq));
    let asked: Vec<_> = asked.copied().collect();
    let Some(first) = asked.first() else { return Ok(None) };
    let from_seq = first.seq - 1;
    let ids: Vec<_> = asked.iter().map(|asked| asked.task_id).collect();
    let requests = tasks::asked_by_people(pool, &ids, user.since).await?;
    Ok(Some(TranscriptPart::of(from_seq, asked, requests)))
}

/// Numbers of facts in an answer.
#[derive(Default)]
struct Counts {
    found: i32,
    new: i32,
    /// Facts that exceeded the user's limit.
    full: i32,
    unsaid: i32,
}

/// The result of a reading, to be stored.
struct ExtractionRecord<'a> {
    services: &'a Services,
    agent: &'a Agent,
    job: &'a ExtractFacts,
    user: &'a CampaignUser,
    stretch: &'a TranscriptPart,
}

impl ExtractionRecord<'_> {
    async fn commit(
        &self,
        run: &Run,
        answered: &Result<ExtractionResult, NoFacts>,
    ) -> HandlerResult {
        let mut tx = run.pool().begin().await.map_err(JobError::retry)?;
        self.write(&mut tx, answered).await.map_err(JobError::retry)?;
        let refused = answered.as_ref().err();
        let is_last = run.attempt() >= run.max_attempts();
        if let Some(refused) = refused.filter(|_| !is_last) {
            return retry_later(run, tx, refused).await;
        }
        if let Some(rest) = self.stretch.remaining_job(self.job) {
            facts::enqueue_reading(&mut tx, &rest).await.map_err(JobError::retry)?;
        }
        match refused.filter(|refused| !refused.is_judged()) {
            // The session may never be read again, so a person should learn that no model has read this part.
            Some(unanswered) => retry_later(run, tx, unanswered).await,
            None => Ok(run.commit(tx).await?),
        }
    }

    async fn write(
        &self,
        conn: &mut PgConnection,
        answered: &Result<ExtractionResult, NoFacts>,
    ) -> Result<(), facts::Error> {
        let now = self.services.clock.now();
        let counts = match answered {
            Ok(answered) => self.record_all(&mut *conn, answered, now).await?,
            Err(_) => Counts::default(),
        };
        let reason = answered.as_ref().err().map(|refused| refused.reason().to_owned());
        let extraction = Extraction {
            session_id: self.job.session_id,
            campaign_id: self.job.campaign_id,
            agent: self.agent.name.clone(),
            from_seq: self.stretch.from_seq,
            to_seq: self.stretch.to_seq,
            ended_at: now,
            requests: count(self.stretch.requests.len()),
            found: counts.found,
            new: counts.new,
            outcome: if reason.is_some() { Outcome::Refused } else { Outcome::Done },
            reason,
        };
        facts::record_extraction(&mut *conn, &extraction).await?;
        if counts.new > 0 {
            memory::request_embeddings(&mut *conn, &self.services.memory).await?;
        }
        if extraction.requests == 0 {
            return Ok(());
        }
        let event = feed::New {
            campaign_id: Some(self.job.campaign_id),
            task_id: None,
            session_id: Some(self.job.session_id),
            kind: match extraction.outcome {
                Outcome::Done => feed::Kind::FactsRead,
                Outcome::Refused => feed::Kind::FactsRefused,
            },
            data: json!({
                "requests": extraction.requests, "found": counts.found, "new": counts.new, "too_many": counts.full,
                "unsaid": counts.unsaid, "reason": extraction.reason,
            }),
        };
        Ok(feed::append(conn, &[event], now).await?)
    }

    async fn record_all(
        &self,
        conn: &mut PgConnection,
        answered: &ExtractionResult,
        now: DateTime<Utc>,
    ) -> Result<Counts, facts::Error> {
        let (found, unsaid) = (count(answered.facts.len()), count(answered.unsaid));
        let mut counts = Counts { found, unsaid, ..Counts::default() };
        if answered.facts.is_empty() {
            return Ok(counts);
        }
        // The model may have read for minutes. Meanwhile the user may be forgotten, or the campaign have another user.
        let user = facts::lock_user_of(&mut *conn, self.job.campaign_id, &self.user.user).await?;
        let Some(user) = user.filter(|user| user.user == self.user.user) else {
            return Ok(counts);
        };
        for fact in &answered.facts {
            let request = &self.stretch.requests[fact.request];
            if request.said_at < user.since {
                continue;
            }
            match self.record(&mut *conn, fact, request, now).await? {
                RecordOutcome::New(_) => counts.new += 1,
                RecordOutcome::Full => counts.full += 1,
                RecordOutcome::Known(_) | RecordOutcome::AlreadyShown(_) => {}
            }
        }
        Ok(counts)
    }

    async fn record(
        &self,
        conn: &mut PgConnection,
        fact: &ExtractedFact,
        request: &Request,
        now: DateTime<Utc>,
    ) -> Result<RecordOutcome, facts::Error> {
        let config = &self.services.facts;
        let end = config.extracted_for().map(|period| request.said_at + period);
        // A fact that has already expired is not stored.
        if end.is_some_and(|end| end <= now) {
            return Ok(RecordOutcome::Known(request.task_id));
        }
        let stated = Statement {
            user: &self.user.user,
            attribute: &fact.attribute,
            text: &fact.text,
            said_at: request.said_at,
            expires_at: end,
            found: StatementOrigin::Extracted {
                campaign_id: self.job.campaign_id,
                session_id: self.job.session_id,
                turn: request.turn,
                task_id: request.task_id,
                agent: &self.agent.name,
            },
        };
        facts::record(conn, &stated, (config, &self.services.memory.language), now).await
    }
}

/// Records the refusal, and leaves the stretch to the next attempt, or to a person after the last one. Later requests
/// are not read before it.
async fn retry_later(
    run: &Run,
    mut tx: Transaction<'static, Postgres>,
    refused: &NoFacts,
) -> HandlerResult {
    if queue::check_and_lock_lease(&mut *tx, run.job_id(), run.lease())
        .await
        .map_err(JobError::retry)?
    {
        tx.commit().await.map_err(JobError::retry)?;
    }
    let error = Error::Refused(refused.reason().to_owned());
    Err(match refused.is_judged() {
        true => JobError::retry(error),
        false => JobError::retry_after(pause(run.attempt()))(error),
    })
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}
