//! The call as it would be sent now, and if it fits.

use sqlx::PgConnection;

use crate::{
    context::{
        AssembledContext, Budget, Calibration, Checkpoint, Parts, Pressure, Weight, assemble,
        compaction::View,
        parts::{
            AboutUser, Attachments, AwaitedResults, Blackboard, Campaign, Edict, Fact, Parameters,
            Skill, Task,
        },
        xml::FenceSeed,
    },
    domain::{facts, sessions::SessionRow},
    jobs::{
        Services,
        compact_session::LoadedView,
        compact_session::setup::FixedWeight,
        measure,
        run_turn::{
            begin::{board::Board, entries::TurnEntries, provider_session, team},
            error::{BeginRefusal, Error},
            load::assignment::Assignment,
            notices,
        },
    },
};

/// Parts of a call besides the stored conversation.
pub struct Additions<'a> {
    pub calibration: &'a Calibration,
    pub words: &'a TurnEntries,
    pub team: &'a [team::ColleagueStatus],
}

/// Assembles the call. The session's row is unchanged since before the turn.
pub async fn load_outlook(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    session: &SessionRow,
    given: &Additions<'_>,
) -> Result<Outlook, Error> {
    let known = services.histories.take(session.id, session.generation);
    let loaded = LoadedView::read_after(known, conn, session).await;
    let mut loaded = loaded.map_err(Error::undone)?;
    // Notices are sent from the transcript. The prompt is sent as the task.
    for (notice, seq) in given.words.notices().iter().zip(session.last_seq + 1..) {
        loaded.add(measure::to_entry(notice, seq));
    }
    let outlook = build_outlook(assignment, session, &loaded, given);
    services.histories.store(loaded.without_unstored());
    outlook
}

pub struct Outlook {
    pub assembled: AssembledContext,
    pub around: FixedWeight,
    pub budget: Budget,
    pub estimated_tokens: u64,
    pub pressure: Pressure,
    pub has_history: bool,
}

pub fn build_outlook(
    assignment: &Assignment<'_>,
    session: &SessionRow,
    loaded: &LoadedView,
    given: &Additions<'_>,
) -> Result<Outlook, Error> {
    let Assignment { prompt, route, parameters, blackboard, result_schema, .. } = assignment;
    let texts = [parameters.as_ref().map(|it| &it.json), blackboard.as_ref().map(|it| &it.json)];
    let schema = result_schema.iter().map(|schema| Weight::of_text(&schema.to_string()));
    let shown: Weight =
        texts.into_iter().flatten().map(|json| Weight::of_text(json)).chain(schema).sum();
    let calibration = given.calibration;
    let view = loaded.view().map_err(Error::undone)?;
    let has_history = notices::has_history(&view, &assignment.own_entries());
    let left_out = notices::find_left_out(session.id, &view);
    let mut assembled = assemble_call(assignment, session, view, given)?;
    if let Some(span) = left_out {
        assembled.manifest.add_not_inherited(span);
    }
    assembled.manifest.without_turns.clone_from(&session.rejected_turns);
    let system_tokens = calibration.tokens(assembled.system_weight);
    Budget::new(route.model_window_tokens, route.reserve_tokens, system_tokens)
        .map_err(|error| Error::Refused(BeginRefusal::for_good(error.to_string())))?;
    let budget = Budget::of_narrow(route.window_tokens, route.reserve_tokens, system_tokens);
    let estimated_tokens = calibration.project(checkpoint(session).as_ref(), assembled.weight);
    Ok(Outlook {
        around: FixedWeight {
            system: assembled.system_weight,
            upcoming: Weight::of_user_text(&prompt.text)
                + shown
                + given.words.upcoming()
                + assembled.task_files_weight,
        },
        pressure: budget.pressure(estimated_tokens, &route.thresholds),
        assembled,
        budget,
        estimated_tokens,
        has_history,
    })
}

fn assemble_call(
    assignment: &Assignment<'_>,
    session: &SessionRow,
    view: View<'_>,
    given: &Additions<'_>,
) -> Result<AssembledContext, Error> {
    let Assignment {
        prompt,
        agent,
        campaign,
        skills,
        route,
        parameters,
        blackboard,
        edicts,
        facts: about,
        tools,
        result_schema,
        attachments,
        attachment_rules,
        ..
    } = assignment;
    let skills: Vec<Skill<'_>> =
        skills.iter().map(|skill| Skill { name: &skill.name, text: &skill.text }).collect();
    let edicts: Vec<Edict<'_>> = edicts
        .iter()
        .map(|edict| Edict {
            id: edict.id,
            name: &edict.name,
            author: &edict.author,
            trust: &edict.trust,
            text: edict.body.as_deref(),
        })
        .collect();
    let facts: Vec<Fact<'_>> = about.iter().flat_map(|about| &about.facts).map(fact).collect();
    let shows_posts = given.words.board.as_ref().is_some_and(Board::shows_posts);
    let notice = notices::restored_notice(session, &view, &assignment.own_entries(), shows_posts);
    let schema = result_schema.as_ref().map(ToString::to_string);
    let parts = Parts {
        agent_prompt: &agent.prompt,
        skills: &skills,
        campaign: Campaign {
            version: campaign.version,
            name: &campaign.name,
            brief: &campaign.brief,
            client_context: campaign.client_context.as_deref(),
        },
        edicts: &edicts,
        facts: about.as_ref().map(|about| AboutUser { user: &about.user, facts: &facts }),
        roster: &team::roster(assignment),
        tools,
        view,
        heard_to_seq: route
            .provider
            .holds_session()
            .then(|| provider_session::received_to_seq(session))
            .flatten(),
        notice: notice.as_deref(),
        board: given.words.board.as_ref().map(Board::part),
        statuses: &team::statuses(given.team),
        parameters: parameters.as_ref().map(|it| Parameters { source: &it.source, json: &it.json }),
        blackboard: blackboard
            .as_ref()
            .map(|it| Blackboard { version: it.version, json: &it.json }),
        result_schema: schema.as_deref(),
        attachments: Attachments { rules: attachment_rules, of_task: attachments },
        results: given
            .words
            .results
            .as_ref()
            .map(|told| AwaitedResults { entry_id: told.id, message: &told.message }),
        task: Task {
            entry_id: prompt.entry_id,
            prompt: &prompt.text,
            asked_by: assignment.asked_by.as_deref(),
            is_correction: prompt.is_correction,
        },
    };
    let seed = session.fence_seed.as_slice().try_into();
    let seed =
        seed.map_err(|_| Error::undone("the fence seed of the session does not have 32 bytes"))?;
    Ok(assemble(&parts, &FenceSeed::from_bytes(seed), given.calibration))
}

fn fact(told: &facts::PromptFact) -> Fact<'_> {
    let facts::PromptFact { id, attribute, text, source, said } = told;
    Fact { id: *id, attribute, text, source, said }
}

fn checkpoint(session: &SessionRow) -> Option<Checkpoint> {
    serde_json::from_value(session.checkpoint.clone()?).ok()
}
