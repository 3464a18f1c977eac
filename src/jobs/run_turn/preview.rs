//! Previews: the begin phase of a turn up to its writes, in a transaction that is always rolled back, and the request of its first call.

use std::sync::Arc;

use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    begin::{
        board::Board,
        draft::{Draft, DraftParams},
        entries::TurnEntries,
        provider_session::{self, ProviderBinding},
        request::{check_charge, first_request},
        window::EarlierBegins,
    },
    call::conversation::outline_conversation,
    error::Error as TurnError,
    estimate::estimate,
    load::assignment::{self, Assignment, TaskRecord},
};
use crate::{
    causes::causes,
    context::Digest,
    domain::{
        agents::{AgentInstance, SessionMode},
        context_previews::{BeginTransaction, ContextPreview, Error, PreviewSubject, Previews},
        contexts::ProviderRequest,
        conversations::{self, Decision},
        failovers::{SkippedEntry, describe_skipped},
        manifests,
        sessions::State,
        task_files::attachments::NewAttachment,
        tasks::{self, Task},
    },
    jobs::Services,
    providers::{self, CallTexts, Request},
};

/// Lease of a preview: above that of every run, and rolled back with the rest.
pub(super) const LEASE: i64 = i64::MAX;
/// Stands for the prompt of a preview without one.
const NO_PROMPT: &str = "…";

/// Builds the previews of a process.
pub fn previews(services: Arc<Services>) -> Previews {
    let others = Arc::clone(&services);
    Previews::new(
        move |subject, begin| {
            let services = Arc::clone(&services);
            Box::pin(async move { preview(&services, subject, &*begin).await })
        },
        move |subject, begin| {
            let services = Arc::clone(&others);
            Box::pin(async move { estimate(&services, subject, &*begin).await })
        },
    )
}

/// Drafts a turn and its request, without sending it.
async fn preview(
    services: &Services,
    subject: PreviewSubject,
    begin: &BeginTransaction,
) -> Result<ContextPreview, Error> {
    let is_of_task = matches!(subject, PreviewSubject::Task(_));
    let prompt_note = prompt_note(&subject);
    let mut refused = Vec::new();
    let mut shown = loop {
        let assignment = assign(services, subject.clone(), &refused, begin).await?;
        let mut transaction = begin().await.map_err(undone)?;
        let drafted = draft(&mut transaction, services, &assignment).await;
        transaction.rollback().await.map_err(undone)?;
        let drafted = drafted?;
        match too_dear_entry(&assignment, drafted.draft.outlook.estimated_tokens)? {
            Some(skipped) => refused.push(skipped),
            None => break drafted.into_preview(&assignment),
        }
    };
    if !is_of_task {
        shown.task_id = None;
        let note = "the task does not exist yet: its id, and the random mark around its text, differ with each preview";
        shown.notes.push(note.to_owned());
    }
    shown.notes.extend(prompt_note);
    Ok(shown)
}

/// Says that a preview has no prompt.
pub(super) fn prompt_note(subject: &PreviewSubject) -> Option<String> {
    matches!(subject, PreviewSubject::Agent { prompt: None, .. })
        .then(|| format!("no prompt was given, so `{NO_PROMPT}` stands for it"))
}

/// Returns the entry of the chain, if the turn skips it because of its charge. An error: the turn would fail.
pub(super) fn too_dear_entry(
    assignment: &Assignment<'_>,
    estimated_tokens: u64,
) -> Result<Option<SkippedEntry>, Error> {
    let (Err(error), Some(chain)) = (check_charge(assignment, estimated_tokens), &assignment.chain)
    else {
        return Ok(None);
    };
    let (entry, because) = (chain.chosen().name.clone(), error.to_string());
    match chain.choice.is_last_resort {
        true => Err(turn_error(error)),
        false => Ok(Some(SkippedEntry { entry, because, usable_at: None })),
    }
}

/// Says which entries of the chain are skipped, and why.
pub(super) fn chain_note(assignment: &Assignment<'_>) -> Option<String> {
    let skipped = &assignment.chain.as_ref()?.choice.skipped;
    (!skipped.is_empty()).then(|| describe_skipped(skipped))
}

/// Reads the task, or adds one that is rolled back, and builds its assignment. Refuses a turn that may not begin.
pub(super) async fn assign<'a>(
    services: &'a Services,
    subject: PreviewSubject,
    refused: &[SkippedEntry],
    begin: &BeginTransaction,
) -> Result<Assignment<'a>, Error> {
    let mut transaction = begin().await.map_err(undone)?;
    let read = read(&mut transaction, services, subject).await;
    transaction.rollback().await.map_err(undone)?;
    let read = read?;
    check_may_begin(&read)?;
    let assigned = Assignment::of(services, read, refused, None, &CancellationToken::new()).await;
    assigned.map_err(|(_, refused)| Error::Refused(refused.why))
}

/// Reads a task. One that does not exist is added, and rolled back by the caller.
async fn read(
    conn: &mut PgConnection,
    services: &Services,
    subject: PreviewSubject,
) -> Result<TaskRecord, Error> {
    let task = match subject {
        PreviewSubject::Task(id) => tasks::get(&mut *conn, id).await?,
        PreviewSubject::Agent {
            campaign_id,
            agent,
            instance,
            prompt,
            node,
            session,
            attachments,
        } => {
            let role = (agent.as_str(), instance.as_str());
            let how = (node.as_deref(), session);
            let given = (prompt.as_deref(), attachments.as_slice());
            add(&mut *conn, services, campaign_id, role, given, how).await?
        }
    };
    check_open(&task)?;
    assignment::read(conn, services, task.job_id).await.map_err(turn_error)
}

async fn add(
    conn: &mut PgConnection,
    services: &Services,
    campaign_id: Uuid,
    (agent, instance): (&str, &str),
    (prompt, attachments): (Option<&str>, &[NewAttachment]),
    (node, session_mode): (Option<&str>, Option<SessionMode>),
) -> Result<Task, Error> {
    let catalogue = services.library.current();
    let AgentInstance { agent, instance } = catalogue.resolve_addressee(agent, instance)?;
    let node = node.map(|node| catalogue.node(node)).transpose()?;
    let new = tasks::New {
        instance,
        node: node.map(AsRef::as_ref),
        session_mode,
        attachments,
        ..tasks::New::for_agent(campaign_id, agent, prompt.unwrap_or(NO_PROMPT))
    };
    Ok(tasks::add(conn, &services.tasks, &new, services.clock.now()).await?.task)
}

fn check_open(task: &Task) -> Result<(), Error> {
    match task.state {
        tasks::State::Queued => Ok(()),
        tasks::State::Running => Err(Error::TurnRuns),
        state => Err(tasks::Error::Ended { id: task.id, state }.into()),
    }
}

fn check_may_begin(read: &TaskRecord) -> Result<(), Error> {
    if let Some(task) = read.task_to_stop() {
        return Err(Error::BeingCancelled(task.id));
    }
    if let Some(Task { agent, campaign_id, .. }) = read.paused_task() {
        return Err(Error::AgentPaused { agent: agent.clone(), campaign_id: *campaign_id });
    }
    match read.paused_flow() {
        Some((_, flow_id)) => Err(Error::FlowPaused(flow_id)),
        None => Ok(()),
    }
}

/// A drafted turn with the request of its first call.
struct DraftedTurn<'a> {
    draft: Draft<'a>,
    request: Request,
    envelope: Result<Option<providers::Envelope>, providers::Error>,
    notes: Vec<String>,
}

async fn draft<'a>(
    conn: &mut PgConnection,
    services: &'a Services,
    assignment: &'a Assignment<'a>,
) -> Result<DraftedTurn<'a>, Error> {
    check_idle(&mut *conn, &assignment.task).await?;
    let found =
        DraftParams::find(&mut *conn, services, assignment, LEASE, EarlierBegins::default()).await;
    let (setting, resolved) = found.map_err(turn_error)?;
    let drafted = Draft::with_prepared(&mut *conn, &setting, resolved).await;
    let mut draft = drafted.map_err(turn_error)?;
    let session = &draft.resolved.session;
    if draft.resolved.decision != Decision::Resume {
        // Its session goes with the transaction.
        services.histories.remove_sessions(&[session.id]);
    }
    let bound = provider_session::bind(&mut *conn, services, assignment, session).await;
    let bound = bound.map_err(turn_error)?;
    let notes = notes(assignment, &draft, &setting, bound.as_ref());
    let mut request = first_request(assignment, &draft.outlook, &setting.calibration);
    let envelope = match bound {
        Some(bound) => {
            let unheard = draft.outlook.assembled.unheard.take();
            let given = (&draft.resolved.session, bound);
            let outlined = outline_conversation(conn, services, assignment, given, unheard).await;
            outlined.and_then(|conversation| {
                request.conversation = Some(conversation);
                assignment.route.provider.envelope(&request)
            })
        }
        None => assignment.route.provider.envelope(&request),
    };
    Ok(DraftedTurn { draft, request, envelope, notes })
}

/// Refuses a preview during a turn of the conversation: the begin of a real turn would take that turn for one of a lost worker.
pub(super) async fn check_idle(conn: &mut PgConnection, task: &Task) -> Result<(), Error> {
    let of = (task.campaign_id, task.agent.as_str(), task.instance.as_str());
    let open = conversations::find_current(conn, of, task.session_mode, task.id).await;
    match open.map_err(undone)?.is_some_and(|open| open.state == State::Running) {
        true => Err(Error::TurnRuns),
        false => Ok(()),
    }
}

fn notes(
    assignment: &Assignment<'_>,
    draft: &Draft<'_>,
    setting: &DraftParams<'_>,
    bound: Option<&ProviderBinding>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if draft.resolved.decision != Decision::Resume {
        notes.push(
            "the turn opens a new session: its id, and the random marks that delimit texts, differ with each preview"
                .to_owned(),
        );
    } else if has_new_entries(assignment, &draft.entries.words) {
        notes.push(
            "new posts and notices are delimited by random marks, which differ with each preview"
                .to_owned(),
        );
    }
    if bound.is_some() {
        notes.push("ids that are all zeros are chosen when the call begins".to_owned());
    }
    let before = EarlierBegins::default();
    if before.needs_space(&assignment.route, &draft.outlook, &setting.calibration) {
        notes.push(
            "the context exceeds the threshold of the agent: older messages are summarised first, and this is the context before"
                .to_owned(),
        );
    }
    notes.extend(assignment.busy.as_ref().map(|busy| busy.describe()));
    notes.extend(chain_note(assignment));
    notes
}

/// Returns true if the turn adds entries whose ids are random, and their marks with them.
fn has_new_entries(assignment: &Assignment<'_>, words: &TurnEntries) -> bool {
    let own = assignment.own_entries();
    let shows_posts = words.board.as_ref().is_some_and(Board::shows_posts);
    shows_posts || words.notices().iter().any(|notice| !own.contains(&notice.id))
}

impl DraftedTurn<'_> {
    fn into_preview(self, assignment: &Assignment<'_>) -> ContextPreview {
        let Self { draft, request, envelope, notes } = self;
        let Assignment { task, route, .. } = assignment;
        let Draft { resolved, outlook, .. } = draft;
        let (sent, problem) = match envelope.map_err(|error| causes(&error)) {
            Ok(Some(envelope)) => match provider_request(&envelope, &request) {
                Ok(sent) => (Some(sent), None),
                Err(error) => (None, Some(error.to_string())),
            },
            Ok(None) => (None, None),
            Err(problem) => (None, Some(problem)),
        };
        let session = resolved.session;
        // Only names and numbers, so there is nothing that JSON could not say.
        let manifest = serde_json::to_value(&outlook.assembled.manifest).unwrap_or_default();
        ContextPreview {
            task_id: Some(task.id),
            agent: task.agent.clone(),
            instance: task.instance.clone(),
            session_id: (resolved.decision == Decision::Resume).then_some(session.id),
            turn: session.turn_count + 1,
            provider: route.provider_name.clone(),
            model: route.model.clone(),
            estimated_tokens: i64::try_from(outlook.estimated_tokens).unwrap_or(i64::MAX),
            notes,
            request: sent,
            problem,
            system: request.system,
            messages: request.messages.into_iter().map(Arc::unwrap_or_clone).collect(),
            tools: request.tools.into_iter().map(Arc::unwrap_or_clone).collect(),
            parts: manifests::parts_of(&manifest),
        }
    }
}

fn provider_request(
    envelope: &providers::Envelope,
    request: &Request,
) -> serde_json::Result<ProviderRequest> {
    let body = envelope.body(&CallTexts::of(request))?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let sha256 = Digest::of(&body).to_string();
    let url = envelope.url().map(str::to_owned);
    let key_header = envelope.key_header().map(str::to_owned);
    let headers = envelope.headers().iter().map(|header| (*header).to_owned()).collect();
    Ok(ProviderRequest { url, key_header, headers, sha256, body })
}

pub(super) fn turn_error(error: TurnError) -> Error {
    match error {
        TurnError::Refused(refused) => Error::Refused(refused.why),
        // Another run has begun or ended a turn meanwhile.
        TurnError::Overtaken | TurnError::Ended | TurnError::NoTask(_) => Error::TurnRuns,
        TurnError::Undone(error) => Error::Undone(error),
        error @ (TurnError::Commit(_) | TurnError::MovesOn(_)) => undone(error),
    }
}

pub(super) fn undone(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Undone(error.into())
}
