//! `dalsegno eval run`: adds the tasks and reruns of a run, waits for them, has the judge read the answers, and prints the results.
//!
//! All state is in the tasks and reruns. Their metadata name run, variant, case and repetition, so a command that was killed and is given
//! again adds what is missing, and nothing twice. Idempotency keys of tasks and reruns follow from the same.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use anyhow::anyhow;
use serde_json::{Map, Value};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Run, StoredRun, campaign_name, list_runs, new_run, print_report, stored_run::EVAL_CAMPAIGN,
};
use crate::{
    cli::{Exit, Failure, output::Output, server::Server, turn::rerun},
    domain::{
        agents::{MAIN, SessionMode},
        amount::{Limit, OnLimit},
        campaigns::EVAL_TAG,
        evals::{AnswerSource, Case, Eval, Place, RerunCase, Variant, judge_prompt, rubric_key},
        reruns::Rerun,
        tasks::{Line, OnFailure},
        text::count,
    },
    operations::{AddManyTasks, CreateCampaign, ListReruns, RerunTurn, ShowCampaign, ShowContext},
    transcript::Role,
};

pub(super) async fn run(args: &Run, output: Output, server: &Server) -> Result<Exit, Failure> {
    let eval = args.eval.read()?;
    let campaign_id = find_campaign(args, &eval, server).await?;
    let id = choose_run(args, &eval, campaign_id, output, server).await?;
    let limit = args.timeout.and_then(|limit| limit.to_std().ok());
    let run =
        RunningEval { eval: &eval, id, campaign_id, end: limit.map(|it| Instant::now() + it) };
    run.add_answers(server).await?;
    run.wait(server, |stored| {
        let tasks =
            stored.answers.iter().filter(|it| matches!(it.source, AnswerSource::Task { .. }));
        tasks.map(|answer| answer.source.id()).collect()
    })
    .await?;
    run.wait_for_reruns(server).await?;
    run.add_judge_tasks(server).await?;
    run.wait(server, |stored| {
        let judged = stored.answers.iter().flat_map(|answer| answer.judged.values());
        judged.map(|task| task.id).collect()
    })
    .await?;
    let mut runs = list_runs(&eval, campaign_id, server).await?.into_iter();
    let shown = runs.by_ref().find(|stored| stored.id == run.id);
    print_report(&eval, shown, runs.next(), output, server).await
}

async fn find_campaign(args: &Run, eval: &Eval, server: &Server) -> Result<Uuid, Failure> {
    let is_own = args.eval.campaign.is_none();
    let budget = args.budget.limit();
    match server.campaign(&args.eval.campaign(eval)?).await {
        Ok(id) if budget == Limit::default() => Ok(id),
        Ok(id) => {
            // The same command again, after it was cut off, names the budget that it has set.
            let known = server.call(ShowCampaign { id, summary: false }).await?.budget;
            if known.is_some_and(|known| known.limit == budget) {
                return Ok(id);
            }
            let words = format!(
                "the campaign {id} has another budget, and keeps it: change it with `dalsegno campaign budget {id}`, and leave out the budget here"
            );
            Err(Failure::new(Exit::Usage, anyhow!(words)))
        }
        Err(failure) if is_own && failure.exit == Exit::NotFound => {
            let campaign = CreateCampaign {
                name: campaign_name(eval),
                brief: eval.brief.clone(),
                client_context: None,
                parameters: Map::new(),
                budget,
                // A run ends when all of its tasks have.
                on_limit: Some(OnLimit::Fail),
                tags: vec![EVAL_TAG.to_owned()],
                metadata: Map::new(),
            };
            Ok(server.call(campaign).await?.campaign.id)
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the newest run if it is unfinished and the file is the same, or a new one.
async fn choose_run(
    args: &Run,
    eval: &Eval,
    campaign_id: Uuid,
    output: Output,
    server: &Server,
) -> Result<String, Failure> {
    let runs = list_runs(eval, campaign_id, server).await?;
    let newest = runs.into_iter().next().filter(|newest| !args.new && newest.is_of(eval));
    let mut note = None;
    if let Some(mut newest) = newest {
        newest.load_verdicts(eval, server).await?;
        let unfinished = newest.report(eval, &[]).unfinished;
        note = (unfinished > 0).then_some((newest.id, unfinished));
    }
    match note {
        Some((id, unfinished)) => {
            let answers = count(unfinished, "answer is", "answers are");
            output.print_note(&format!(
                "run {id} goes on: {answers} missing; `--new` starts another run instead"
            ));
            Ok(id)
        }
        None => {
            let id = new_run();
            let answers = count(eval.places().len(), "answer", "answers");
            output.print_note(&format!(
                "run {id} begins with {answers} to give in campaign {campaign_id}"
            ));
            Ok(id)
        }
    }
}

fn rerun_of(rerun: RerunCase, variant: &Variant, metadata: Map<String, Value>) -> RerunTurn {
    RerunTurn {
        id: rerun.session,
        number: rerun.turn,
        call: Some(rerun.call),
        times: Some(1),
        model: variant.model.clone(),
        temperature: None,
        agent_file: variant.agent_file.clone(),
        metadata,
    }
}

/// Returns what the answers of a case reply to: its prompt, or the last message that the call was sent.
async fn request_of(case: &Case, server: &Server) -> Result<String, Failure> {
    let Some(RerunCase { session, turn, call }) = case.rerun else {
        return Ok(case.prompt.clone().unwrap_or_default());
    };
    let show = ShowContext { id: session, turn: Some(turn), call: Some(call) };
    let context = server.call(show).await?;
    let last = context.messages.into_iter().rfind(|message| message.role == Role::User);
    Ok(last.map(|message| message.text).unwrap_or_default())
}

struct RunningEval<'a> {
    eval: &'a Eval,
    id: String,
    campaign_id: Uuid,
    /// The end of the wait; `None`: there is no limit.
    end: Option<Instant>,
}

impl RunningEval<'_> {
    async fn stored(&self, server: &Server) -> Result<Option<StoredRun>, Failure> {
        let runs = list_runs(self.eval, self.campaign_id, server).await?;
        let Some(mut stored) = runs.into_iter().find(|stored| stored.id == self.id) else {
            return Ok(None);
        };
        stored.load_verdicts(self.eval, server).await?;
        Ok(Some(stored))
    }

    /// Adds the tasks and reruns that are missing.
    async fn add_answers(&self, server: &Server) -> Result<(), Failure> {
        let stored = self.stored(server).await?;
        let answers = stored.iter().flat_map(|stored| &stored.answers);
        let known: HashSet<&Place> = answers.map(|answer| &answer.place).collect();
        let mut lines = Vec::new();
        for place in self.eval.places().iter().filter(|place| !known.contains(place)) {
            let (variant, case) = (self.eval.variant(place), self.eval.case(place));
            let Some((variant, case)) = variant.zip(case) else { continue };
            let mut metadata = self.eval.metadata(&self.id, place);
            match (&case.prompt, case.rerun) {
                (_, Some(rerun)) => {
                    // Its session belongs to another campaign.
                    metadata.insert(EVAL_CAMPAIGN.to_owned(), self.campaign_id.to_string().into());
                    let key = format!("eval/{}/{place}", self.id);
                    server.call_keyed(key, rerun_of(rerun, variant, metadata)).await?;
                }
                (Some(prompt), None) => {
                    lines.push(self.line(&variant.agent, prompt, &place.to_string(), metadata));
                }
                (None, None) => {}
            }
        }
        self.add(lines, server).await
    }

    /// Adds a task of the judge for each check that needs one and has none.
    async fn add_judge_tasks(&self, server: &Server) -> Result<(), Failure> {
        let Some(judge) = &self.eval.judge else { return Ok(()) };
        let Some(stored) = self.stored(server).await? else { return Ok(()) };
        let mut lines = Vec::new();
        for answer in &stored.answers {
            let Some(case) = self.eval.case(&answer.place) else { continue };
            let text = answer.text.as_deref().unwrap_or_default();
            let open = answer.open_rubrics(case);
            if open.is_empty() {
                continue;
            }
            let request = request_of(case, server).await?;
            for rubric in open {
                let (answer_id, rubric_key) = (answer.source.id(), rubric_key(rubric));
                let key = format!("judge/{answer_id}/{rubric_key}");
                let mut metadata = self.eval.judge_label(&self.id);
                metadata["eval_answer"] = answer_id.to_string().into();
                metadata["eval_rubric"] = rubric_key.into();
                let metadata = metadata.as_object().cloned().unwrap_or_default();
                let prompt = judge_prompt(rubric, &request, text);
                lines.push(self.line(judge, &prompt, &key, metadata));
            }
        }
        self.add(lines, server).await
    }

    fn line(&self, agent: &str, prompt: &str, key: &str, metadata: Map<String, Value>) -> Line {
        Line {
            agent: agent.to_owned(),
            instance: MAIN.to_owned(),
            prompt: prompt.to_owned(),
            node: None,
            flow_templates: None,
            session: Some(SessionMode::None),
            budget: Limit::default(),
            priority: None,
            run_at: None,
            depends_on: Vec::new(),
            on_failure: OnFailure::default(),
            idempotency_key: Some(format!("eval/{}/{key}", self.id)),
            tags: vec![EVAL_TAG.to_owned()],
            metadata,
            result_schema: None,
            attachments: Vec::new(),
            within_secs: None,
            parameters: Map::new(),
        }
    }

    async fn add(&self, tasks: Vec<Line>, server: &Server) -> Result<(), Failure> {
        if !tasks.is_empty() {
            let id = self.campaign_id;
            server.call(AddManyTasks { id, tasks, unreadable: BTreeMap::new() }).await?;
        }
        Ok(())
    }

    /// Waits for the end of the reruns, at most until the end of the wait.
    async fn wait_for_reruns(&self, server: &Server) -> Result<(), Failure> {
        for RerunCase { session, turn, call } in self.eval.cases.iter().filter_map(|it| it.rerun) {
            let list = || ListReruns { id: session, number: turn, call: Some(call) };
            let is_of_run = |rerun: &Rerun| {
                rerun.metadata.get("eval_run").and_then(Value::as_str) == Some(&self.id)
            };
            rerun::wait(server, list, is_of_run, self.end).await?;
        }
        Ok(())
    }

    /// Waits for the end of tasks, at most until the end of the wait.
    async fn wait(
        &self,
        server: &Server,
        tasks: impl Fn(&StoredRun) -> Vec<Uuid>,
    ) -> Result<(), Failure> {
        let Some(stored) = self.stored(server).await? else { return Ok(()) };
        for id in tasks(&stored) {
            let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                break;
            }
            server.wait_for(id, left.unwrap_or(Duration::MAX)).await?;
        }
        Ok(())
    }
}
