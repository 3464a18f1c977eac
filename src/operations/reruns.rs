//! Reruns of turns.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, ContextState, Operation, Refusal, Spec, Success,
    VerifiedCall,
};
use crate::domain::{
    audit::Action,
    campaigns,
    class::NUL_IN_TEXT,
    contexts::{self, StoredContext},
    labels,
    reruns::{self, CallRoute, Error, OriginalCall, Rerun, RerunOptions, RerunRequest},
    sessions, text, turns,
};

const TAG: &str = "sessions";

/// Sends a call of a turn again, once or several times. The conversation does not change.
///
/// A worker sends the context as the call had it, with the changes that are named here, and stores the answer with its tokens, cost and
/// time. One call is made: its tool calls are stored and not executed. A model with a price is paid from the budget for reruns of the
/// campaign.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RerunTurn {
    pub id: Uuid,
    /// Number of the turn.
    pub number: i32,
    /// Number of the call in its turn, from 1. Without it, the first.
    #[schema(minimum = 1)]
    pub call: Option<i32>,
    /// Number of reruns. Without it, one.
    #[schema(minimum = 1, maximum = 20)]
    pub times: Option<i32>,
    /// The model, of the same provider unless the agent file names another one.
    #[schema(min_length = 1, max_length = 200)]
    pub model: Option<String>,
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f32>,
    /// The text of an agent file: its prompt, skills, tools, model and options replace those of the call.
    #[schema(min_length = 1)]
    pub agent_file: Option<String>,
    /// Your own words, to find the rerun by: a JSON object of at most 4096 bytes.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

/// Lists the reruns of a call of a turn, with the call as it was made in the turn.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListReruns {
    pub id: Uuid,
    /// Number of the turn.
    pub number: i32,
    /// Number of the call in its turn, from 1. Without it, the call of the newest rerun.
    #[schema(minimum = 1)]
    pub call: Option<i32>,
}

/// Reruns of a call of a turn, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TurnReruns {
    pub original: OriginalCall,
    pub reruns: Vec<Rerun>,
    /// The reason why reruns with another temperature are refused. Null: the temperature can be set.
    #[serde(default)]
    pub fixed_temperature: Option<String>,
}

impl Change for RerunTurn {
    const SPEC: Spec =
        Spec::change("rerun_turn", "/v1/sessions/{id}/turns/{number}/reruns", "turn rerun")
            .tag(TAG)
            .answers(Success::Accepted)
            .refuses(&[
                sessions::Error::UNKNOWN,
                turns::Error::UNKNOWN,
                contexts::Error::NOT_STORED,
                contexts::Error::UNKNOWN_CALL,
                campaigns::Error::CLOSED,
                Error::NOT_EXACT,
                Error::OPTION_MISSING,
                Error::BAD_OPTION,
                Error::BAD_AGENT_FILE,
                Error::TOO_MANY,
                Error::NO_BUDGET,
                labels::Error::METADATA_TOO_LONG,
                text::Error::TOO_LONG,
                text::Error::EMPTY,
                NUL_IN_TEXT,
            ]);
    const ACTION: Action = Action::SessionRerun;
    type Output = TurnReruns;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<TurnReruns> {
        let Self { id, number, call: of_turn, times, model, temperature, agent_file, metadata } =
            self;
        let (of_turn, times) = (of_turn.unwrap_or(1), times.unwrap_or(1));
        let id = turns::find_session(&mut *conn, id, number).await?;
        let data = json!({
            "turn": number,
            "call": of_turn,
            "times": times,
            "model": model,
            "temperature": temperature,
            "has_agent_file": agent_file.is_some(),
        });
        let context = contexts::find(&mut *conn, id, Some(number), of_turn).await?;
        check_exact(&context)?;
        let options = RerunOptions { model, temperature, agent_file };
        let request =
            RerunRequest { context: &context, options: &options, times, metadata: &metadata };
        let reruns = reruns::request(&mut *conn, &request, &call.rerun_routes, call.now).await?;
        let original = reruns::find_original(conn, (id, number), of_turn).await?;
        let fixed_temperature = fixed_temperature(&original, call);
        let output = TurnReruns { original, reruns, fixed_temperature };
        Ok(ChangeOutput::of(id, output, data))
    }
}

impl Operation for ListReruns {
    const SPEC: Spec =
        Spec::read("list_reruns", "/v1/sessions/{id}/turns/{number}/reruns", "turn reruns")
            .tag(TAG)
            .refuses(&[
                sessions::Error::UNKNOWN,
                turns::Error::UNKNOWN,
                contexts::Error::UNKNOWN_CALL,
            ]);
    type Output = TurnReruns;

    async fn run(self, call: &Call) -> Result<TurnReruns, Refusal> {
        let Self { id, number, call: of_turn } = self;
        let mut transaction = call.begin_read().await?;
        let id = turns::find_session(&mut transaction, id, number).await?;
        let all = reruns::list(&mut transaction, id, number).await?;
        let of_turn = of_turn.or_else(|| all.last().map(|rerun| rerun.call)).unwrap_or(1);
        let original = reruns::find_original(&mut transaction, (id, number), of_turn).await?;
        let reruns = all.into_iter().filter(|rerun| rerun.call == of_turn).collect();
        let fixed_temperature = fixed_temperature(&original, call);
        Ok(TurnReruns { original, reruns, fixed_temperature })
    }
}

/// Returns the reason why the provider of a call takes no temperature.
fn fixed_temperature(original: &OriginalCall, call: &Call) -> Option<String> {
    let own = CallRoute { provider: original.provider.clone(), model: original.model.clone() };
    let options = RerunOptions { temperature: Some(0.0), ..RerunOptions::default() };
    match call.rerun_routes.find(&own, &options) {
        Err(Error::NoTemperature { reason, .. }) => Some(reason.to_owned()),
        _ => None,
    }
}

/// Refuses a call that would not be sent again as it was.
fn check_exact(context: &StoredContext) -> Result<(), Refusal> {
    let VerifiedCall { state, problem, .. } = VerifiedCall::of(context)?;
    match state {
        ContextState::Exact | ContextState::NoRequest => Ok(()),
        ContextState::Erased | ContextState::Differs | ContextState::UnknownVersion => {
            let (session_id, turn) = (context.session_id, context.turn);
            let reason = problem.unwrap_or_default();
            Err(Error::NotExact { session_id, turn, reason }.into())
        }
    }
}
