//! The request of a rerun: that of the call, with the changes that were asked for.

use std::sync::Arc;

use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use super::route::read_draft;
use crate::{
    context::{Budget, Weight, attachments, parts::Skill, replay::AgentTexts},
    domain::{
        agents::{Agent, DraftAgent},
        contexts::{self, StoredContext},
        reruns::{Error, Rerun},
        sessions::SessionRow,
    },
    jobs::{Services, route, side_call::clamp_to_u32},
    providers::{Conversation, Envelope, Grants, Options, Provider, Purpose, Request, Timeouts},
    tools,
    transcript::ToolSpec,
};

/// Reads the call, with the texts of the agent file in place of its own.
pub(super) async fn read_call(
    conn: &mut PgConnection,
    services: &Services,
    rerun: &Rerun,
) -> Result<(StoredContext, Option<DraftAgent>), Error> {
    let draft = rerun.agent_file.as_deref().map(|text| read_draft(services, text)).transpose()?;
    let skills: Vec<Skill<'_>> = draft
        .iter()
        .flat_map(|draft| &draft.skills)
        .map(|skill| Skill { name: &skill.name, text: &skill.text })
        .collect();
    let texts =
        draft.as_ref().map(|draft| AgentTexts { prompt: &draft.agent.prompt, skills: &skills });
    let Rerun { session_id, turn, call, .. } = *rerun;
    let texts = texts.as_ref();
    let context = contexts::find_with_agent(conn, session_id, Some(turn), call, texts).await?;
    Ok((context, draft))
}

/// Builds the request.
pub(super) async fn build(
    services: &Services,
    provider: &dyn Provider,
    (rerun, session): (&Rerun, &SessionRow),
    (context, draft): (StoredContext, Option<&DraftAgent>),
    cancel: &CancellationToken,
) -> Result<Request, Error> {
    let (session_id, turn) = (rerun.session_id, rerun.turn);
    let replayed = context.replayed.map_err(|error| Error::NotExact {
        session_id,
        turn,
        reason: error.to_string(),
    })?;
    let window_tokens = u64::from(provider.window_tokens(&rerun.model, cancel).await);
    // A rerun has one call, so no tool can read a file.
    let rules = provider.attachment_rules(&rerun.model, false);
    let mut messages = replayed.messages;
    for message in messages.iter_mut().filter(|message| !message.media.is_empty()) {
        attachments::leave_out(Arc::make_mut(message), &rules);
    }
    let envelope = context.envelope.as_deref().map(serde_json::from_str::<Envelope>).transpose();
    let envelope =
        envelope.map_err(|source| contexts::Error::Envelope { session_id, turn, source })?;
    // The options of another provider mean something else there.
    let own = envelope.filter(|_| rerun.provider == session.provider);
    let (own, own_reserve) = own.and_then(|envelope| envelope.options()).unzip();
    let options = draft.map(|draft| route::options(&draft.agent.options)).or(own);
    let options = options.unwrap_or_default();
    let of_file = draft.and_then(|draft| u32::try_from(draft.agent.reserve_tokens?).ok());
    let usual = || clamp_to_u32(Budget::default_reserve(window_tokens));
    let tools = match draft {
        Some(draft) => tools_of(services, provider, &draft.agent, session),
        None if provider.holds_session() => Vec::new(),
        None => replayed.tools,
    };
    let mut request = Request {
        turn: format!("{session_id}/{turn}/rerun/{}", rerun.number),
        purpose: Purpose::Turn,
        model: rerun.model.clone(),
        system: replayed.system,
        messages,
        tools,
        window_tokens: clamp_to_u32(window_tokens),
        reserve_tokens: of_file.or(own_reserve).unwrap_or_else(usual),
        estimated_prompt_tokens: None,
        options: Options { temperature: rerun.temperature.or(options.temperature), ..options },
        timeouts: Timeouts::default(),
        conversation: None,
        credential: None,
    };
    let is_own =
        draft.is_none() && (&rerun.provider, &rerun.model) == (&session.provider, &session.model);
    let counted = context.counted_tokens.filter(|_| is_own).and_then(|n| u64::try_from(n).ok());
    let tokens = counted.unwrap_or_else(|| expected_tokens(services, rerun, &request));
    request.estimated_prompt_tokens = Some(clamp_to_u32(tokens));
    Ok(request)
}

/// Gives the request of a provider that keeps conversations one of its own, which it forgets, and at most this cost.
pub(super) fn begin_conversation(
    request: &mut Request,
    rerun: &Rerun,
    credential: Option<String>,
    max_cost_micros: Option<i64>,
) {
    request.conversation = Some(Conversation {
        external_id: rerun.external_id(),
        credential,
        is_temporary: true,
        grants: Grants {
            max_rounds: Some(1),
            max_cost_micros: max_cost_micros.and_then(|micros| u64::try_from(micros).ok()),
            ..Grants::default()
        },
        ..Conversation::default()
    });
}

/// Lists the tools that the agent of a file is offered.
fn tools_of(
    services: &Services,
    provider: &dyn Provider,
    agent: &Agent,
    session: &SessionRow,
) -> Vec<Arc<ToolSpec>> {
    let max_rounds = agent.grants.max_turns.unwrap_or(services.agents.max_rounds);
    match provider.holds_session() || max_rounds < 2 {
        true => Vec::new(),
        false => tools::list_offered_to_agent(agent, &session.instance),
    }
}

/// Estimates what a correct server counts. A cold estimate is high on purpose, so the bare weight is used instead.
fn expected_tokens(services: &Services, rerun: &Rerun, request: &Request) -> u64 {
    let messages = request.messages.iter().map(|message| Weight::of_message(message));
    let tools = request.tools.iter().map(|tool| Weight::of_tool(tool));
    let weight: Weight = messages.chain(tools).chain([Weight::of_text(&request.system)]).sum();
    let calibration = services.calibrations.of(&rerun.provider, &rerun.model);
    let room_tokens = u64::from(request.window_tokens.saturating_sub(request.reserve_tokens));
    match calibration.tokens(weight) {
        tokens if !calibration.is_cold() && tokens <= room_tokens => tokens,
        _ => weight.millitokens() / 1000,
    }
}
