//! What the model would see now, and whether it fits.

use super::{
    Error, Refused, assignment::Assignment, begin::Given, board::Board, kept, notices, team,
};
use crate::{
    context::{
        Assembled, Budget, Checkpoint, Parts, Pressure, Weight, assemble,
        compaction::View,
        parts::{AboutUser, Blackboard, Campaign, Edict, Fact, Skill, Task, Told},
        xml::FenceSeed,
    },
    domain::{facts, sessions::Live},
    jobs::{compact_session::Loaded, folder::Around},
};

pub(super) struct Outlook {
    pub(super) assembled: Assembled,
    pub(super) around: Around,
    pub(super) budget: Budget,
    pub(super) estimated_tokens: u64,
    pub(super) pressure: Pressure,
    pub(super) has_history: bool,
}

pub(super) fn look_ahead(
    assignment: &Assignment<'_>,
    session: &Live,
    loaded: &Loaded,
    given: &Given<'_>,
) -> Result<Outlook, Error> {
    let Assignment { task, route, blackboard, .. } = assignment;
    let shown = blackboard.as_ref().map_or(Weight::ZERO, |it| Weight::of_text(&it.json));
    let calibration = given.calibration;
    let view = loaded.view().map_err(Error::undone)?;
    let has_history = notices::has_history(&view, &assignment.own_entries());
    let assembled = assemble_call(assignment, session, view, given)?;
    let system_tokens = calibration.tokens(assembled.system_weight);
    Budget::new(route.model_window_tokens, route.reserve_tokens, system_tokens)
        .map_err(|error| Error::Refused(Refused::for_good(error.to_string())))?;
    let budget = Budget::of_narrow(route.window_tokens, route.reserve_tokens, system_tokens);
    let estimated_tokens = calibration.project(checkpoint(session).as_ref(), assembled.weight);
    Ok(Outlook {
        around: Around {
            system: assembled.system_weight,
            upcoming: Weight::of_user_text(&task.prompt) + shown + given.words.upcoming(),
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
    session: &Live,
    view: View<'_>,
    given: &Given<'_>,
) -> Result<Assembled, Error> {
    let Assignment {
        task,
        agent,
        campaign,
        skills,
        route,
        blackboard,
        edicts,
        facts: about,
        tools,
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
    let notice = notices::restored(session, &view, &assignment.own_entries(), shows_posts);
    let parts = Parts {
        agent_prompt: &agent.prompt,
        skills: &skills,
        campaign: Campaign {
            id: campaign.id,
            name: &campaign.name,
            brief: &campaign.brief,
            client_context: campaign.client_context.as_deref(),
        },
        edicts: &edicts,
        facts: about.as_ref().map(|about| AboutUser { user: &about.user, facts: &facts }),
        roster: &team::roster(assignment),
        tools,
        view,
        heard_to_seq: route.keeps_conversation.then(|| kept::heard_to_seq(session)).flatten(),
        notice: notice.as_deref(),
        board: given.words.board.as_ref().map(Board::part),
        statuses: &team::statuses(given.team),
        blackboard: blackboard
            .as_ref()
            .map(|it| Blackboard { version: it.version, json: &it.json }),
        results: given
            .words
            .results
            .as_ref()
            .map(|told| Told { entry_id: told.id, message: &told.message }),
        task: Task {
            entry_id: task.id,
            prompt: &task.prompt,
            asked_by: assignment.asked_by.as_deref(),
        },
    };
    let seed = session.fence_seed.as_slice().try_into();
    let seed = seed.map_err(|_| Error::undone("the fence seed of the session has not 32 bytes"))?;
    Ok(assemble(&parts, &FenceSeed::from_bytes(seed), given.calibration))
}

fn fact(told: &facts::Told) -> Fact<'_> {
    let facts::Told { id, attribute, text, source, said } = told;
    Fact { id: *id, attribute, text, source, said }
}

fn checkpoint(session: &Live) -> Option<Checkpoint> {
    serde_json::from_value(session.checkpoint.clone()?).ok()
}
