//! `dalsegno eval`: compares variants of an agent by the checks of an eval file.

mod run;
mod show;
mod stored_run;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use chrono::TimeDelta;
use clap::{Args, Subcommand};
use uuid::Uuid;

use self::stored_run::{StoredRun, list_runs};
use super::{
    Context, Exit, Failure,
    output::Output,
    server::{Server, with_server},
    words::{BudgetFlags, parse_period},
};
use crate::domain::{evals::Eval, ids::GivenCampaign};

#[derive(Debug, Subcommand)]
pub(super) enum EvalCommand {
    /// Gives each prompt of the file to each variant, checks the answers, and compares them with the run before.
    ///
    /// Each answer is a task in a conversation of its own, or a rerun of a call. A run that was cut off goes on where it was. Exit code 8: an answer failed a
    /// check.
    Run(Run),
    /// Prints the results of the newest run, or of another one, without adding tasks.
    Report(Report),
    /// Lists the runs of an eval, the newest first.
    Ls(InEval),
}

#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    eval: InEval,
    /// Starts a new run, even if the newest one is unfinished.
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    budget: BudgetFlags,
    /// Maximum time to wait, for example 10m; the tasks go on.
    #[arg(long, value_name = "DURATION", value_parser = parse_period)]
    timeout: Option<TimeDelta>,
}

#[derive(Debug, Args)]
pub(super) struct Report {
    #[command(flatten)]
    eval: InEval,
    /// The run: `dalsegno eval ls` lists them.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct InEval {
    /// The eval file: docs/how-to/change-a-prompt.md describes it.
    file: PathBuf,
    /// Campaign of the tasks. Default: one with the name of the eval, which the first run creates.
    #[arg(long, value_name = "CAMPAIGN")]
    campaign: Option<GivenCampaign>,
}

pub(super) async fn run(command: &EvalCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| match command {
        EvalCommand::Run(args) => run::run(args, context.output, server).await,
        EvalCommand::Report(args) => report(args, context.output, server).await,
        EvalCommand::Ls(args) => list(args, context.output, server).await,
    })
    .await
}

async fn report(args: &Report, output: Output, server: &Server) -> Result<Exit, Failure> {
    let eval = args.eval.read()?;
    let campaign_id = server.campaign(&args.eval.campaign(&eval)?).await?;
    let mut runs = list_runs(&eval, campaign_id, server).await?;
    let at = match &args.run {
        Some(id) => runs.iter().position(|run| run.id == *id),
        None => (!runs.is_empty()).then_some(0),
    };
    let Some(at) = at else {
        let file = args.eval.file.display();
        let words = match &args.run {
            Some(id) => format!("there is no run {id}: `dalsegno eval ls {file}` lists them"),
            None => format!("there is no run yet: `dalsegno eval run {file}` starts one"),
        };
        return Err(Failure::new(Exit::NotFound, anyhow!(words)));
    };
    let mut shown = runs.drain(at..).take(2);
    let (run, before) = (shown.next(), shown.next());
    print_report(&eval, run, before, output, server).await
}

/// Prints the report of a run beside the one before, and returns the exit code for it.
async fn print_report(
    eval: &Eval,
    run: Option<StoredRun>,
    before: Option<StoredRun>,
    output: Output,
    server: &Server,
) -> Result<Exit, Failure> {
    let Some(mut run) = run else { return Ok(Exit::Ok) };
    run.load_verdicts(eval, server).await?;
    let before = match before {
        Some(mut before) => {
            before.load_verdicts(eval, server).await?;
            before.answers
        }
        None => Vec::new(),
    };
    let report = run.report(eval, &before);
    if let Err(failure) = run.record(eval, &report, server).await {
        let note = format!("the results are not stored for the console: {:#}", failure.error);
        output.print_note(&note);
    }
    output.print_data(&report, || show::format_report(&report));
    Ok(match (report.failures.is_empty(), report.unfinished) {
        (false, _) => Exit::ProblemsFound,
        (true, 0) => Exit::Ok,
        (true, _) => Exit::TimedOut,
    })
}

async fn list(args: &InEval, output: Output, server: &Server) -> Result<Exit, Failure> {
    let eval = args.read()?;
    let campaign_id = server.campaign(&args.campaign(&eval)?).await?;
    let mut reports = Vec::new();
    for mut run in list_runs(&eval, campaign_id, server).await? {
        run.load_verdicts(&eval, server).await?;
        reports.push((run.begun(), run.report(&eval, &[])));
    }
    let data: Vec<_> = reports.iter().map(|(_, report)| report).collect();
    output.print_data(&data, || show::format_runs(&reports));
    Ok(Exit::Ok)
}

impl InEval {
    fn read(&self) -> Result<Eval, Failure> {
        let path = self.file.display().to_string();
        let text = std::fs::read_to_string(&self.file)
            .with_context(|| format!("cannot read the eval file {path}"))
            .map_err(|error| Failure::new(Exit::Usage, error))?;
        let folder = self.file.parent().unwrap_or(Path::new(""));
        Ok(Eval::read(&path, &text, |file| std::fs::read_to_string(folder.join(file)))?)
    }

    fn campaign(&self, eval: &Eval) -> Result<GivenCampaign, Failure> {
        match &self.campaign {
            Some(given) => Ok(given.clone()),
            None => {
                campaign_name(eval).parse().map_err(|error| Failure::failed(anyhow!("{error}")))
            }
        }
    }
}

/// Returns the name of the campaign that the first run creates.
fn campaign_name(eval: &Eval) -> String {
    format!("eval {}", eval.name)
}

/// Makes the id of a run: short, because people type it.
fn new_run() -> String {
    Uuid::new_v4().simple().to_string().split_off(24)
}
