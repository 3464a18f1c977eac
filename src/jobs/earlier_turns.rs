//! Earlier turns of a conversation and its agent, from which an estimate learns.

use std::collections::HashMap;

use serde_json::Value;
use sqlx::PgConnection;

use crate::{
    context::Calibration,
    domain::{
        StatementError,
        estimates::EarlierTurn,
        manifests,
        sessions::{self, AlikeQuery},
        turns::{self, TurnCharge},
    },
};

/// Turns that count. Older ones tell little: agents and tasks change.
const MAX_TURNS: i64 = 40;

/// Earlier turns on one model, those of the conversation first.
#[derive(Debug, Default)]
pub(super) struct EarlierTurns {
    pub(super) turns: Vec<EarlierTurn>,
    pub(super) n_of_conversation: usize,
    /// Calibration of the newest of these sessions, or of any other session on the model.
    pub(super) calibration: Option<Calibration>,
}

/// Reads the last turns of a conversation; if it has few, also those of its agent elsewhere.
pub(super) async fn read(
    conn: &mut PgConnection,
    query: &AlikeQuery<'_>,
) -> Result<EarlierTurns, StatementError> {
    let sessions = sessions::alike(&mut *conn, query).await?;
    let ids: Vec<_> = sessions.iter().map(|session| session.id).collect();
    let charges = turns::charges(&mut *conn, &ids, MAX_TURNS).await?;
    let (of, numbers): (Vec<_>, Vec<_>) =
        charges.iter().map(|charge| (charge.session_id, charge.number)).unzip();
    let counts = manifests::first_counts(&mut *conn, &of, &numbers).await?;
    let first: HashMap<_, _> =
        counts.iter().map(|it| ((it.session_id, it.turn), it.counted_tokens)).collect();
    let own: Vec<_> =
        sessions.iter().filter(|it| it.is_of_conversation).map(|session| session.id).collect();
    let known = sessions.iter().find_map(|session| calibration(session.calibration.clone()));
    let known = match known {
        Some(known) => Some(known),
        None => {
            let newest = sessions::newest_calibration(conn, query.provider, query.model);
            calibration(newest.await?)
        }
    };
    Ok(EarlierTurns {
        n_of_conversation: charges.iter().filter(|it| own.contains(&it.session_id)).count(),
        turns: charges
            .iter()
            .map(|it| earlier(it, first.get(&(it.session_id, it.number)).copied()))
            .collect(),
        calibration: known,
    })
}

/// Without a count of its first call, all calls of a turn are taken for equal.
fn earlier(charge: &TurnCharge, first_tokens: Option<i64>) -> EarlierTurn {
    let calls = i64::from(charge.calls);
    EarlierTurn {
        calls,
        first_tokens: first_tokens.unwrap_or(charge.input_tokens / calls.max(1)),
        input_tokens: charge.input_tokens,
        cached_tokens: charge.cache_read_tokens,
        output_tokens: charge.output_tokens,
        cost_micros: charge.cost_micros,
    }
}

fn calibration(stored: Option<Value>) -> Option<Calibration> {
    serde_json::from_value(stored?).ok().filter(|known: &Calibration| !known.is_cold())
}
