//! The end of the turn by its fate: answered, cancelled, interrupted or failed.

use sqlx::PgConnection;

use crate::{
    domain::{
        mentions::HandedOn,
        sessions::State,
        tasks, text,
        turn_phases::{self, AnsweredTurn, Failure, ProviderState, TurnEnd},
        turns::{self, HistoryCheck},
    },
    jobs::run_turn::{
        commit::{
            calibration::Lesson,
            fate::Fate,
            feed_event::{INTERRUPTED_BY_CANCEL, INTERRUPTED_BY_DRAIN},
            provider_session,
            structured_result::MISMATCH,
            turn::Turn,
        },
        error::Error,
        load::assignment::Assignment,
    },
    providers::{Class, Outcome, Rebuild},
};

impl Turn<'_> {
    pub(super) async fn end_turn(
        &self,
        conn: &mut PgConnection,
        ending: &TurnEnd<'_>,
        fate: &Fate,
        (learnt, handed_on): (&Lesson, Option<&HandedOn>),
    ) -> Result<(), Error> {
        let failed = |error, ends_task| Failure {
            error,
            rebuild: None,
            ends_task,
            refusal: None,
            forgotten: false,
            interrupted: false,
            history_check: Some(self.called.history_check)
                .filter(|it| *it == HistoryCheck::NotSeen),
            rejected: false,
            put_off: matches!(fate, Fate::PutOff { .. } | Fate::WaitsForBudget { .. }),
        };
        match (fate, &self.called.result) {
            (
                fate @ (Fate::Done | Fate::Correction { .. } | Fate::Mismatch { .. }),
                Ok(outcome),
            ) => {
                self.commit(conn, ending, (outcome, fate), (learnt, handed_on)).await?;
            }
            (Fate::Cancelled, _) => {
                turn_phases::cancel(conn, ending, INTERRUPTED_BY_CANCEL).await?
            }
            (Fate::GivenBack, _) => {
                turn_phases::interrupt(conn, ending, INTERRUPTED_BY_DRAIN).await?
            }
            (Fate::Again { why, interrupted: true, rebuild: None, .. }, _) => {
                turn_phases::interrupt(conn, ending, &text::make_storable(why.clone())).await?;
            }
            (Fate::Again { why, rebuild, interrupted, .. }, _) => {
                let why = text::make_storable(why.clone());
                let forgotten = self.is_forgotten();
                let rebuild = rebuild.filter(|_| !forgotten);
                let interrupted = *interrupted;
                let failure = Failure { rebuild, forgotten, interrupted, ..failed(&why, false) };
                turn_phases::fail(conn, ending, &failure).await?;
            }
            (Fate::PutOff { why, .. } | Fate::NoRoom { why }, result) => {
                let why = text::make_storable(why.clone());
                let interrupted = result.as_ref().is_err_and(|error| error.has_acted);
                let failure = Failure { interrupted, ..failed(&why, false) };
                turn_phases::fail(conn, ending, &failure).await?;
            }
            (Fate::WaitsForBudget { refusal, interrupted }, _) => {
                let why = text::make_storable(refusal.describe_wait());
                let failure = Failure { interrupted: *interrupted, ..failed(&why, false) };
                turn_phases::fail(conn, ending, &failure).await?;
            }
            (Fate::Failed { why, interrupted, rejected, refusal }, _) => {
                let why = text::make_storable(why.clone());
                let refusal = refusal.as_deref();
                let (forgotten, rejected) = (self.is_forgotten(), *rejected);
                // The notice of an earlier interruption is left out with this rejected prompt, so it has to be
                // repeated.
                let was_interrupted = self.opened.session.state == State::Interrupted;
                let interrupted = *interrupted || (rejected && was_interrupted);
                let failure =
                    Failure { refusal, forgotten, interrupted, rejected, ..failed(&why, true) };
                turn_phases::fail(conn, ending, &failure).await?;
            }
            (Fate::LeaseLost, _)
            | (Fate::Done | Fate::Correction { .. } | Fate::Mismatch { .. }, Err(_)) => {
                return Err(Error::Overtaken);
            }
        }
        Ok(())
    }

    async fn commit(
        &self,
        conn: &mut PgConnection,
        ending: &TurnEnd<'_>,
        (outcome, fate): (&Outcome, &Fate),
        (learnt, handed_on): (&Lesson, Option<&HandedOn>),
    ) -> Result<(), Error> {
        let Assignment { agent, route, .. } = self.assignment;
        let sessions = &self.services.sessions;
        let continued = outcome.conversation.as_deref();
        let meter = continued.map(provider_session::meter).transpose()?;
        let grown = continued.map(provider_session::to_added_files).unwrap_or_default();
        let kept = continued.zip(meter.as_ref()).map(|(continued, meter)| ProviderState {
            head: continued.head,
            generation: self.opened.session.generation,
            meter,
            rewritten: provider_session::is_rewritten(continued),
            grown: &grown,
        });
        let board = self.opened.words.board.as_ref();
        let entry = board.and_then(|board| board.entry(self.opened.posts_seq));
        let result = text::make_storable(outcome.message.text.clone());
        let fault = match fate {
            Fate::Correction { fault } | Fate::Mismatch { why: fault } => fault.clone(),
            _ => String::new(),
        };
        let fault = text::make_storable(fault);
        let task = match fate {
            Fate::Correction { .. } => tasks::End::Corrected { fault: &fault },
            Fate::Mismatch { .. } => tasks::End::Mismatched { result: &result, error: &fault },
            _ => tasks::End::Done { result: &result, result_json: self.structured.value() },
        };
        let mismatch = (*fate != Fate::Done).then(|| MISMATCH.to_owned());
        let unbatched = self.opened.has_unbatched_files.then(|| turns::NOT_BATCHED.to_owned());
        let flags: Vec<String> =
            learnt.flags.iter().cloned().chain(mismatch).chain(unbatched).collect();
        let done = AnsweredTurn {
            task,
            context_tokens: i64::try_from(learnt.context_tokens).ok(),
            kept,
            board: board.map(|board| board.seen(entry.as_ref())),
            expires_at: sessions.expires_at(&route.provider_name, agent.ttl_days, ending.now),
            calibration: learnt.calibration_json.as_ref(),
            checkpoint: learnt.checkpoint_json.as_ref(),
            flags: &flags,
            history_check: self.called.history_check,
            handed_on,
        };
        Ok(turn_phases::commit(conn, ending, &done).await?)
    }

    /// Returns true if the provider has lost the conversation. It is rewritten once from the messages, under the same
    /// id.
    fn is_forgotten(&self) -> bool {
        let lost = Class::Rebuild { reason: Rebuild::Lost };
        let is_lost = self.called.result.as_ref().is_err_and(|error| error.class == lost);
        is_lost && self.opened.session.head.is_some()
    }
}
