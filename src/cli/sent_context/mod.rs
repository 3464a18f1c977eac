//! `dalsegno context`: what calls were sent, and would be sent now.

pub(super) mod diff;
mod preview;
mod provider_transcript;
mod show;

use clap::{ArgGroup, Args, Subcommand};

use super::{
    Context, Exit, Failure,
    args::InCampaign,
    output::Output,
    server::{Server, with_server},
    words::read_text,
};
use crate::{
    domain::{agents::MAIN, class::Kind, ids::PartialId},
    operations::{
        CompareContexts, ContextState, Noun, PreviewAgentContext, PreviewTaskContext,
        ProviderRequest, ProviderTranscriptState, Refusal, SentContext, ShowContext,
        ShowLedgerContext, ShowProviderTranscript, VerifiedCall, VerifyContexts,
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum ContextCommand {
    /// Shows what a call of a turn, or a call for a summary or for facts, was sent, byte for byte.
    Show(Show),
    /// Compares what two turns were sent, word by word.
    Diff(Diff),
    /// Shows what the next turn of a task or an agent would be sent now, without sending it.
    Preview(Preview),
    /// Assembles the stored calls of a session again, and compares them with what was sent.
    Verify(Verify),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The session: its id, or a unique beginning or end of it. An end has at least 8 digits.
    #[arg(value_name = "SESSION", required_unless_present = "ledger")]
    session: Option<PartialId>,
    /// The turn: `dalsegno turn ls` lists them. By default the newest one with a stored context.
    #[arg(long, value_name = "TURN")]
    turn: Option<i32>,
    /// The call of the turn, from 1.
    #[arg(long, value_name = "CALL", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..))]
    call: i32,
    /// Instead of a session: a call for a summary or for facts, by its number in the ledger, which `dalsegno turn show` lists.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["session", "turn", "call"])]
    ledger: Option<i64>,
    /// Prints the provider's own transcript up to the answer of the turn, and compares it with the stored messages. Only Claude has one.
    #[arg(long, conflicts_with_all = ["ledger", "call", "raw", "curl"])]
    transcript: bool,
    #[command(flatten)]
    form: RequestForm,
}

/// The form in which a request is printed.
#[derive(Debug, Args)]
pub(super) struct RequestForm {
    /// Prints the body of the request and nothing else, byte for byte.
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Prints a command that sends the same request.
    #[arg(long, conflicts_with_all = ["json", "raw"])]
    curl: bool,
}

#[derive(Debug, Args)]
pub(super) struct Diff {
    #[command(flatten)]
    session: InSession,
    /// The earlier turn.
    #[arg(value_name = "TURN")]
    from: i32,
    /// The later turn.
    #[arg(value_name = "TURN")]
    to: i32,
    /// The session of the second turn, if it is another one.
    #[arg(long, value_name = "SESSION")]
    with: Option<PartialId>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("subject").required(true).args(["task", "agent"])))]
pub(super) struct Preview {
    /// The task, which has not ended: its id, or a unique beginning or end of it. An end has at least 8 digits.
    #[arg(value_name = "TASK", conflicts_with_all = ["campaign", "instance", "prompt"])]
    task: Option<PartialId>,
    /// The agent: `dalsegno agent ls` lists them. curator_2 is instance 2 of curator.
    #[arg(long)]
    agent: Option<String>,
    #[command(flatten)]
    campaign: InCampaign,
    /// Instance of the agent; each has a conversation of its own.
    #[arg(long, default_value = MAIN)]
    instance: String,
    /// Prompt for the agent; `-` reads it from the standard input. Default: `…` stands for it.
    #[arg(long)]
    prompt: Option<String>,
    #[command(flatten)]
    form: RequestForm,
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    #[command(flatten)]
    session: InSession,
}

#[derive(Debug, Args)]
pub(super) struct InSession {
    /// The session: its id, or a unique beginning or end of it. An end has at least 8 digits.
    #[arg(value_name = "SESSION")]
    session: PartialId,
}

pub(super) async fn run(command: &ContextCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let output = context.output;
        match command {
            ContextCommand::Show(show) => run_show(show, output, server).await,
            ContextCommand::Diff(diff) => run_diff(diff, output, server).await,
            ContextCommand::Preview(preview) => run_preview(preview, context, server).await,
            ContextCommand::Verify(verify) => run_verify(verify, output, server).await,
        }
    })
    .await
}

async fn run_show(show: &Show, output: Output, server: &Server) -> Result<Exit, Failure> {
    if let (true, Some(session)) = (show.transcript, &show.session) {
        let id = server.id(Noun::Session, session).await?;
        let read = server.call(ShowProviderTranscript { id, turn: show.turn }).await?;
        output.print_data(&read, || provider_transcript::format_transcript(&read));
        let differs = read.state == ProviderTranscriptState::Differs;
        return Ok(if differs { Exit::ProblemsFound } else { Exit::Ok });
    }
    let sent = find(show, server).await?;
    let request = || request(sent.request.as_ref(), sent.problem.as_deref());
    show.form.print(output, request, || {
        output.print_data(&sent, || show::format_context(&sent));
    })?;
    Ok(exit(sent.state))
}

async fn find(show: &Show, server: &Server) -> Result<SentContext, Failure> {
    match (show.ledger, &show.session) {
        (None, Some(session)) => {
            let id = server.id(Noun::Session, session).await?;
            let call = Some(show.call);
            Ok(server.call(ShowContext { id, turn: show.turn, call }).await?)
        }
        // The parser demands one of both.
        (ledger, _) => {
            Ok(server.call(ShowLedgerContext { ledger_id: ledger.unwrap_or_default() }).await?)
        }
    }
}

async fn run_preview(
    preview: &Preview,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let draft = match (&preview.task, &preview.agent) {
        (Some(task), _) => {
            let id = server.id(Noun::Task, task).await?;
            server.call(PreviewTaskContext { id }).await?
        }
        (None, agent) => {
            let id = preview.campaign.id(context, server).await?;
            let agent = agent.clone().unwrap_or_default();
            let prompt = read_text(preview.prompt.as_deref(), None)?;
            let instance = preview.instance.clone();
            server.call(PreviewAgentContext { id, agent, instance, prompt }).await?
        }
    };
    let request = || request(draft.request.as_ref(), draft.problem.as_deref());
    preview.form.print(context.output, request, || {
        context.output.print_data(&draft, || preview::format_preview(&draft));
    })?;
    Ok(Exit::Ok)
}

impl RequestForm {
    fn print<'a>(
        &self,
        output: Output,
        request: impl FnOnce() -> Result<&'a ProviderRequest, Failure>,
        print_all: impl FnOnce(),
    ) -> Result<(), Failure> {
        match (self.raw, self.curl) {
            (true, _) => output.print_bytes(request()?.body.as_bytes()),
            (_, true) => output.print_text(&show::format_curl(request()?)?),
            _ => print_all(),
        }
        Ok(())
    }
}

async fn run_diff(diff: &Diff, output: Output, server: &Server) -> Result<Exit, Failure> {
    let id = server.id(Noun::Session, &diff.session.session).await?;
    let to_session = match &diff.with {
        Some(session) => Some(server.id(Noun::Session, session).await?),
        None => None,
    };
    let compared =
        server.call(CompareContexts { id, from: diff.from, to: diff.to, to_session }).await?;
    output.print_data(&compared, || diff::format_diff(&compared));
    Ok(Exit::Ok)
}

async fn run_verify(verify: &Verify, output: Output, server: &Server) -> Result<Exit, Failure> {
    let id = server.id(Noun::Session, &verify.session.session).await?;
    let page = |cursor: Option<String>, limit| VerifyContexts {
        id,
        cursor: cursor.and_then(|cursor| cursor.parse().ok()),
        limit: Some(limit),
    };
    let calls: Vec<VerifiedCall> = server.items(i64::MAX, page).await?;
    output.print_data(&calls, || show::format_verified(&calls));
    let differs = calls.iter().any(|call| call.state == ContextState::Differs);
    Ok(if differs { Exit::ProblemsFound } else { Exit::Ok })
}

fn exit(state: ContextState) -> Exit {
    match state {
        ContextState::Exact | ContextState::NoRequest | ContextState::Erased => Exit::Ok,
        ContextState::Differs | ContextState::UnknownVersion => Exit::ProblemsFound,
    }
}

fn request<'a>(
    request: Option<&'a ProviderRequest>,
    problem: Option<&str>,
) -> Result<&'a ProviderRequest, Failure> {
    request.ok_or_else(|| {
        let why = match problem {
            Some(problem) => format!("the request cannot be assembled: {problem}"),
            None => "this call has no request, because its model is simulated or it failed before: omit --raw and --curl to see the texts"
                .to_owned(),
        };
        Refusal::new(Kind::NotFound, "no_request", why).into()
    })
}
