//! Captures the statements of one turn in the order in which the service sends them.

use std::sync::{Arc, Mutex, PoisonError};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer, filter::Targets, layer::Context, layer::SubscriberExt as _, registry::LookupSpan,
};

use crate::fixture::{Conversation, Fixture};

/// The statements that sqlx reports inside a job's span.
#[derive(Clone, Default)]
struct Statements(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Sql {
    summary: String,
    statement: String,
}

/// Runs one task in `conversation` and captures its statements. Leaves out BEGIN and COMMIT: the first is not always reported.
pub fn statements_of_a_turn(
    ground: &Fixture,
    conversation: &Conversation,
) -> anyhow::Result<Vec<String>> {
    let statements = Statements::default();
    let interest = Targets::new()
        .with_target("sqlx::query", Level::DEBUG)
        .with_target("dalsegno_queue", Level::INFO);
    let subscriber = tracing_subscriber::registry().with(statements.clone().with_filter(interest));
    // A thread and a runtime of their own: the subscriber is set per thread, and the whole turn has to run on this one.
    std::thread::scope(|scope| {
        let turn = scope.spawn(move || {
            let _listening = tracing::subscriber::set_default(subscriber);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(ground.run_on_own_pool(conversation))
        });
        turn.join().map_err(|_| anyhow::anyhow!("the turn that is listened to has panicked"))?
    })?;
    let mut heard = statements.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *heard))
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Statements {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let in_job = context
            .event_scope(event)
            .is_some_and(|mut spans| spans.any(|span| span.name() == "job"));
        if !in_job || event.metadata().target() != "sqlx::query" {
            return;
        }
        let mut sql = Sql::default();
        event.record(&mut sql);
        // Short statements are their own summary.
        let sql = if sql.statement.is_empty() { sql.summary } else { sql.statement };
        // A connection asks once for each type that is new to it. A worker stores the texts of a session's contexts once.
        let is_of_every_turn =
            !sql.contains("pg_catalog.pg_type") && !sql.contains("dalsegno.context_texts");
        if is_of_every_turn && !["BEGIN", "COMMIT"].contains(&sql.as_str()) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sql);
        }
    }
}

impl Visit for Sql {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => self.summary = value.to_owned(),
            "db.statement" => self.statement = value.trim().to_owned(),
            _ => {}
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn std::fmt::Debug) {}
}
