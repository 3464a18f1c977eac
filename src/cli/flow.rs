//! `dalsegno flow`: tasks that are made together from a template.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::{
    Context, Exit, Failure,
    args::Paging,
    database::with_database,
    output::{fields, table},
    words::{below_words, first_line, time, time_or_dash},
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        Page,
        agents::Catalogue,
        audit::{self, Action},
        campaigns,
        flows::{
            self, CancelledFlow, Flow, Given as Value, Inputs, Shown, State, Template, Templates,
        },
        ids::{Given, GivenCampaign, short},
        transaction::{begin, commit},
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum FlowCommand {
    /// Lists flows, the newest first.
    Ls(List),
    /// Lists the templates with their inputs and steps, and what is wrong with the others.
    Templates,
    /// Adds all tasks of a template, each waiting for those of the steps before it.
    Start(Start),
    /// Shows a flow with its tasks.
    Show(Id),
    /// Lets nothing of it begin any more; what has begun goes on.
    Pause(Id),
    /// Lets a paused flow go on.
    Resume(Id),
    /// Asks again for the tasks of a step and for all that wait for them.
    Retry(Retry),
    /// Cancels all of it that has not ended.
    Cancel(Cancel),
}

#[derive(Debug, Args)]
pub(super) struct Id {
    /// Its id, or the beginning or end of that.
    id: Given,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[arg(long, value_name = "ID")]
    campaign: Option<GivenCampaign>,
    #[arg(long)]
    state: Option<StateName>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(super) struct Start {
    /// The name of its file, without `.md`.
    template: String,
    #[arg(long, value_name = "ID")]
    campaign: GivenCampaign,
    /// An input; a list has one for each of its items: `--input topic="The harbour" --input parts=History --input parts=Boats`.
    #[arg(long = "input", value_name = "NAME=TEXT")]
    inputs: Vec<String>,
    /// All inputs as a JSON object of texts and lists of texts.
    #[arg(long, value_name = "FILE", conflicts_with = "inputs")]
    inputs_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Retry {
    #[command(flatten)]
    id: Id,
    /// The step to go on from.
    #[arg(long, value_name = "STEP")]
    from: String,
}

#[derive(Debug, Args)]
pub(super) struct Cancel {
    #[command(flatten)]
    id: Id,
    /// Why, for whoever finds its tasks cancelled.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateName {
    Running,
    Paused,
    Done,
    Failed,
    Cancelled,
}

pub(super) async fn run(command: &FlowCommand, context: &Context) -> Result<Exit, Failure> {
    if let FlowCommand::Templates = command {
        let (_, templates) = templates(context)?;
        let (all, problems): (Vec<&Template>, _) =
            (templates.all().collect(), templates.problems());
        if !problems.is_empty() {
            let names: Vec<&str> = templates.broken().map(|broken| broken.name.as_str()).collect();
            context.output.note(&format!("cannot be started: {}; {problems}", names.join(", ")));
        }
        context.output.data(&all, || all.iter().map(|it| described(it)).collect());
        return Ok(Exit::Ok);
    }
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(
    command: &FlowCommand,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let (output, who, now) = (context.output, context.who(), SystemClock.now());
    let mut tx = begin(&database.pool).await?;
    let flow = match command {
        FlowCommand::Templates => return Ok(Exit::Ok),
        FlowCommand::Ls(list) => {
            let campaign_id = match &list.campaign {
                Some(given) => Some(campaigns::find(&mut *tx, given, None).await?),
                None => None,
            };
            let state = list.state.map(Into::into);
            let filter = flows::Filter { campaign_id, state, within: None };
            let after = match &list.paging.after {
                Some(given) => Some(flows::find(&mut *tx, given, None).await?),
                None => None,
            };
            let page = Page { after, limit: list.paging.limit };
            let flows = flows::list(&mut *tx, filter, page).await?;
            output.data(&flows, || lines(&flows));
            return Ok(Exit::Ok);
        }
        FlowCommand::Show(Id { id }) => {
            let id = flows::find(&mut *tx, id, None).await?;
            let shown = flows::show(&mut tx, id).await?;
            output.data(&shown, || words(&shown));
            return Ok(Exit::Ok);
        }
        FlowCommand::Start(start) => {
            let (catalogue, templates) = templates(context)?;
            let (config, added_by) = (context.load()?, who.label());
            let template = templates.get(&start.template)?;
            let new = flows::New {
                campaign_id: campaigns::find(&mut *tx, &start.campaign, None).await?,
                template,
                inputs: &start.inputs(template)?,
                added_by: Some(&added_by),
                parent_id: None,
            };
            let flow = flows::start(&mut tx, &config.tasks, &catalogue, &new, now).await?;
            let data = json!({ "template": flow.template, "campaign_id": flow.campaign_id });
            audit::write(&mut *tx, &who, Action::FlowStart, flow.id, data, now).await?;
            flow
        }
        FlowCommand::Pause(Id { id }) => {
            let id = flows::find(&mut *tx, id, None).await?;
            audit::write(&mut *tx, &who, Action::FlowPause, id, json!({}), now).await?;
            flows::pause(&mut tx, id, now).await?
        }
        FlowCommand::Resume(Id { id }) => {
            let id = flows::find(&mut *tx, id, None).await?;
            audit::write(&mut *tx, &who, Action::FlowResume, id, json!({}), now).await?;
            flows::resume(&mut tx, id, now).await?
        }
        FlowCommand::Retry(Retry { id: Id { id }, from }) => {
            let (config, added_by) = (context.load()?, who.label());
            let catalogue = context.agents(&config.agents)?;
            let id = flows::find(&mut *tx, id, None).await?;
            let data = json!({ "from": from });
            audit::write(&mut *tx, &who, Action::FlowRetry, id, data, now).await?;
            let by = Some(added_by.as_ref());
            flows::retry(&mut tx, &config.tasks, &catalogue, (id, from), by, now).await?
        }
        FlowCommand::Cancel(Cancel { id: Id { id }, reason }) => {
            let id = flows::find(&mut *tx, id, None).await?;
            let data = json!({ "reason": reason });
            audit::write(&mut *tx, &who, Action::FlowCancel, id, data, now).await?;
            let cancelled = flows::cancel(&mut tx, id, reason, now).await?;
            commit(tx).await?;
            output.data(&cancelled, || cancelled_words(&cancelled));
            return Ok(Exit::Ok);
        }
    };
    commit(tx).await?;
    output.data(&flow, || format!("flow {} is {}", flow.id, flow.state.as_str()));
    Ok(Exit::Ok)
}

fn cancelled_words(cancelled: &CancelledFlow) -> String {
    let CancelledFlow { flow, cancel, had_ended } = cancelled;
    let (id, words) = (flow.id, below_words(*cancel));
    let had_ended = match had_ended {
        0 => String::new(),
        1 => "; 1 task had ended before".to_owned(),
        n => format!("; {n} tasks had ended before"),
    };
    match flow.open {
        0 => format!("flow {id} is {}: {words}{had_ended}", flow.state.as_str()),
        _ => format!("flow {id} ends when its running tasks have stopped: {words}{had_ended}"),
    }
}

fn templates(context: &Context) -> Result<(Catalogue, Templates), Failure> {
    let config = context.load()?;
    let catalogue = context.agents(&config.agents)?;
    let templates = Templates::load(&config.flows, &catalogue).map_err(flows::Error::from)?;
    Ok((catalogue, templates))
}

impl Start {
    fn inputs(&self, template: &Template) -> Result<Inputs, Failure> {
        let usage = |error| Failure::new(Exit::Usage, error);
        if let Some(file) = &self.inputs_file {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("{} cannot be read", file.display()));
            let read = serde_json::from_str(&text.map_err(usage)?)
                .with_context(|| format!("{} is not a JSON object of texts", file.display()));
            return read.map_err(usage);
        }
        let mut inputs = Inputs::new();
        for text in &self.inputs {
            let named = text.split_once('=');
            let (name, value) =
                named.ok_or_else(|| usage(anyhow!("`{text}` is no input: write NAME=TEXT")))?;
            match inputs.remove(name) {
                // A list of one item is given as a text is.
                None if template.has_list(name) => {
                    inputs.insert(name.to_owned(), Value::List(vec![value.to_owned()]))
                }
                None => inputs.insert(name.to_owned(), Value::Text(value.to_owned())),
                Some(before) => inputs.insert(name.to_owned(), Value::List(before.and(value))),
            };
        }
        Ok(inputs)
    }
}

fn lines(flows: &[Flow]) -> String {
    let row = |flow: &Flow| {
        [
            short(flow.id),
            flow.state.as_str().to_owned(),
            flow.template.clone(),
            format!("{}/{}", flow.tasks - flow.open, flow.tasks),
            time(flow.created_at),
            time_or_dash(flow.ended_at),
        ]
    };
    table(&["ID", "STATE", "TEMPLATE", "ENDED", "CREATED", "ENDED AT"], flows.iter().map(row))
}

fn words(shown: &Shown) -> String {
    let flow = &shown.flow;
    let list = [
        ("flow", flow.id.to_string()),
        ("template", flow.template.clone()),
        ("state", flow.state.as_str().to_owned()),
        ("campaign", flow.campaign_id.to_string()),
        ("created", time(flow.created_at)),
        ("ended", time_or_dash(flow.ended_at)),
        ("inputs", first_line(&flow.inputs.to_string(), 200)),
    ];
    let row = |step: &flows::StepTask| {
        [
            step.step.clone(),
            step.state.as_str().to_owned(),
            short(step.task_id),
            format!("{}/{}", step.agent, step.instance),
            step.after.len().to_string(),
        ]
    };
    let steps = table(&["STEP", "STATE", "TASK", "AGENT", "AFTER"], shown.steps.iter().map(row));
    format!("{}\n{steps}", fields(&list))
}

fn described(template: &Template) -> String {
    let mut text = format!("{}: {}\n", template.name, template.description);
    for input in &template.inputs {
        let kind = if input.is_list { " (list)" } else { "" };
        text.push_str(&format!("  --input {}=...{kind}  {}\n", input.name, input.about));
    }
    for step in &template.steps {
        let each = step.each.as_ref().map(|each| format!(", for each of {each}"));
        let after = match step.after.is_empty() {
            true => String::new(),
            false => format!(", after {}", step.after.join(", ")),
        };
        let each = each.unwrap_or_default();
        text.push_str(&format!("  {}: {}/{}{each}{after}\n", step.name, step.agent, step.instance));
    }
    text
}

impl From<StateName> for State {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Running => Self::Running,
            StateName::Paused => Self::Paused,
            StateName::Done => Self::Done,
            StateName::Failed => Self::Failed,
            StateName::Cancelled => Self::Cancelled,
        }
    }
}
