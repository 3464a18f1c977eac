//! Reads facts about a user from what was asked in a session.
//!
//! ```text
//! what people have asked, not read yet ──▶ as much as fits ──▶ ask · judge · ask once more ──▶ one commit: facts · the record of the
//!                                                                                      reading · the job gone, or the next one
//! ```
//!
//! Invariants:
//! - No transaction is open while a model reads. What it cost is in the ledger before its answer is judged.
//! - Facts, the place up to which the session was read, and the end of the job are one commit under the job's lease: a worker that dies
//!   has written none of it, and what was read is passed over by whoever comes again.
//! - A provider that cannot answer just now burns an attempt of the job, and no stretch. After the last one the job is a dead letter, by
//!   which a person can have all of it read.
//! - An answer that is none is refused with its reason, twice at most. Then the reading is recorded as refused, and the next attempt
//!   begins at the same place. What the last attempt refuses is passed over where more stands behind it, so that one odd request does
//!   not keep the rest from being read; where nothing does, a later reading of the session begins there. What no model has answered is
//!   passed over, too, and is a dead letter: a session that is over is not read again by itself.
//! - It is off unless the configuration and the agent's file want it, as they are when the job runs.
//!
//! Races:
//! - The session may be gone by then. The job names the tasks, which stay.
//! - Somebody is forgotten, or the campaign is taken from them, while a model reads. The commit waits for whoever writes about the user,
//!   looks again for whom the campaign works and since when, and leaves out what is not theirs any more.

mod ask;
mod stretch;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use self::{
    ask::{Reader, Refused, pause},
    stretch::{Request, Stretch},
};
use super::{Services, route::Route, services::no_agent};
use crate::{
    context::facts::{Answered, Read},
    domain::{
        Failed,
        agents::{Agent, LookupError},
        facts::{self, CampaignUser, ExtractFacts, Extraction, Found, Outcome, Recorded, Stated},
        feed, memory, tasks,
    },
    queue::{self, End, HandlerResult, JobError, Run},
};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("reading facts about a user: no answer was one, and the last was refused: {0}")]
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
    let unread = unread(run.pool(), &job, &user).await.map_err(JobError::retry)?;
    let reader = Reader { services: &services, agent, route: &route, job: &job, run: &run };
    let Some(stretch) =
        unread.and_then(|unread| unread.first(reader.room_tokens(), |text| reader.tokens_of(text)))
    else {
        return Ok(End::Done);
    };
    let answered = match stretch.requests.is_empty() {
        true => Ok(Answered::default()),
        false => reader.read(&stretch, &user).await?,
    };
    let reading = Reading { services: &services, agent, job: &job, user: &user, stretch: &stretch };
    reading.commit(&run, answered).await
}

/// What nobody has read yet.
async fn unread(
    pool: &PgPool,
    job: &ExtractFacts,
    user: &CampaignUser,
) -> Result<Option<Stretch>, Failed> {
    let places: Vec<i64> = job.asked.iter().map(|asked| asked.seq).collect();
    let unread = facts::unread(pool, job.session_id, &places).await?;
    let asked = job.asked.iter().filter(|asked| unread.contains(&asked.seq));
    let asked: Vec<_> = asked.copied().collect();
    let Some(first) = asked.first() else { return Ok(None) };
    let from_seq = first.seq - 1;
    let ids: Vec<_> = asked.iter().map(|asked| asked.task_id).collect();
    let requests = tasks::asked_by_people(pool, &ids, user.since).await?;
    Ok(Some(Stretch::of(from_seq, asked, requests)))
}

/// What came of the facts of an answer.
#[derive(Default)]
struct Counts {
    found: i32,
    new: i32,
    /// There was no room for them.
    full: i32,
    unsaid: i32,
}

/// What was read, on its way into the tables.
struct Reading<'a> {
    services: &'a Services,
    agent: &'a Agent,
    job: &'a ExtractFacts,
    user: &'a CampaignUser,
    stretch: &'a Stretch,
}

impl Reading<'_> {
    async fn commit(&self, run: &Run, answered: Result<Answered, Refused>) -> HandlerResult {
        let mut tx = run.pool().begin().await.map_err(JobError::retry)?;
        self.write(&mut tx, &answered).await.map_err(JobError::retry)?;
        let refused = answered.err();
        let is_last = run.attempt() >= run.max_attempts();
        if let Some(refused) = refused.as_ref().filter(|_| !is_last) {
            return come_again(run, tx, refused).await;
        }
        if let Some(rest) = self.stretch.rest(self.job) {
            facts::again(&mut tx, &rest).await.map_err(JobError::retry)?;
        }
        match refused.filter(|refused| !refused.is_judged()) {
            // Nobody may ever read the session again: a person should hear of what no model has seen.
            Some(unanswered) => come_again(run, tx, &unanswered).await,
            None => Ok(run.commit(tx).await?),
        }
    }

    async fn write(
        &self,
        conn: &mut PgConnection,
        answered: &Result<Answered, Refused>,
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
        facts::extraction_ended(&mut *conn, &extraction).await?;
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
        answered: &Answered,
        now: DateTime<Utc>,
    ) -> Result<Counts, facts::Error> {
        let (found, unsaid) = (count(answered.facts.len()), count(answered.unsaid));
        let mut counts = Counts { found, unsaid, ..Counts::default() };
        if answered.facts.is_empty() {
            return Ok(counts);
        }
        // The model may have read for minutes: somebody may have been forgotten meanwhile, or it is somebody else's campaign by now.
        let user = facts::hold_user_of(&mut *conn, self.job.campaign_id, &self.user.user).await?;
        let Some(user) = user.filter(|user| user.user == self.user.user) else {
            return Ok(counts);
        };
        for fact in &answered.facts {
            let request = &self.stretch.requests[fact.request];
            if request.said_at < user.since {
                continue;
            }
            match self.record(&mut *conn, fact, request, now).await? {
                Recorded::New(_) => counts.new += 1,
                Recorded::Full => counts.full += 1,
                Recorded::Known(_) | Recorded::Shown(_) => {}
            }
        }
        Ok(counts)
    }

    async fn record(
        &self,
        conn: &mut PgConnection,
        fact: &Read,
        request: &Request,
        now: DateTime<Utc>,
    ) -> Result<Recorded, facts::Error> {
        let config = &self.services.facts;
        let end = config.extracted_for().map(|period| request.said_at + period);
        // What would not hold any more is not worth a line.
        if end.is_some_and(|end| end <= now) {
            return Ok(Recorded::Known(request.task_id));
        }
        let stated = Stated {
            user: &self.user.user,
            attribute: &fact.attribute,
            text: &fact.text,
            said_at: request.said_at,
            expires_at: end,
            found: Found::Extracted {
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

/// Keeps the record and leaves the stretch to the next attempt, or to a person where this was the last. What stands behind it is not read
/// before.
async fn come_again(
    run: &Run,
    mut tx: Transaction<'static, Postgres>,
    refused: &Refused,
) -> HandlerResult {
    if queue::holds(&mut *tx, run.job_id(), run.lease()).await.map_err(JobError::retry)? {
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
