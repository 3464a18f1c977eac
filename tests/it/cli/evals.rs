//! `dalsegno eval`, with the test as the worker.

use std::{collections::HashSet, path::PathBuf};

use dalsegno::domain::{
    evals::{self, Eval},
    tasks::{State, Task},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Fixture, ended};
use crate::app::eventually;

const FILE: &str = r#"
    name = "captions"
    judge = "reviewer"
    variants = [{ name = "now", agent = "copywriter" }, { name = "next", agent = "planner" }]
    [[cases]]
    name = "lamp"
    prompt = "Write a caption for LH-0042."
    checks = [{ contains = "LH-0042" }, { max_words = 5 }]
    [[cases]]
    name = "tone"
    prompt = "Write a greeting."
    checks = [{ judge = "It is friendly." }]
"#;

impl Fixture {
    fn eval(&self) -> PathBuf {
        let path = self.path().join("captions.toml");
        std::fs::write(&path, FILE).unwrap();
        path
    }

    async fn recorded_runs(&self) -> Vec<evals::EvalRun> {
        let all = evals::EvalRunFilter::default();
        let mut conn = self.world.pool.acquire().await.unwrap();
        evals::list_runs(&mut conn, all, None, 10).await.unwrap()
    }

    async fn waiting_tasks(&self, n: usize) -> Vec<Task> {
        eventually("the tasks are added", async || {
            let mut tasks = self.world.tasks().await;
            tasks.retain(|task| task.state == State::Queued);
            (tasks.len() == n).then_some(tasks)
        })
        .await
    }

    /// Answers the waiting tasks: captions with these words, the judge with this verdict.
    async fn answer_all(&self, n: usize, caption: &str, verdict: &Value) {
        for task in self.waiting_tasks(n).await {
            let words = match task.agent == "reviewer" {
                true => verdict.to_string(),
                false => caption.to_owned(),
            };
            self.answer(&task, &words).await;
        }
    }
}

#[tokio::test]
async fn a_killed_run_goes_on_and_is_compared_with_the_next_one() {
    let fixture = Fixture::new().await;
    let (file, campaign) = (fixture.eval(), fixture.campaign());
    let run = ["eval", "run", file.to_str().unwrap(), "--campaign", &campaign];
    let mut killed = fixture.spawn(&run);
    let added = fixture.waiting_tasks(4).await;
    fixture.answer(&added[0], "A lamp.").await;
    killed.kill().await.unwrap();

    let again = fixture.spawn(&run);
    fixture.answer_all(3, "A lamp.", &Value::Null).await;
    // The judge reads two answers.
    fixture.answer_all(2, "", &json!({ "pass": true, "reason": "It is." })).await;
    let first = ended(again).await;
    assert!(first.stderr.contains(" goes on: "), "{first:?}");
    assert_eq!(first.code, 8, "{first:?}");
    for part in ["now", "1 of 2", "50 %", "now/lamp/1", "does not contain `LH-0042`"] {
        assert!(first.has(part), "{part}: {first:?}");
    }
    assert!(first.stdout.lines().all(|line| line.chars().count() <= 80), "{first:?}");
    let tasks = fixture.world.tasks().await;
    let sessions: HashSet<Option<Uuid>> = tasks.iter().map(|task| task.session_id).collect();
    assert_eq!((tasks.len(), sessions.len()), (6, 6), "each task in a session of its own");
    // The prompt of the judge contains rubric and answer.
    let judged = tasks.iter().filter(|task| task.agent == "reviewer");
    assert!(judged.clone().all(|task| task.prompt.contains("friendly")), "{tasks:?}");
    assert!(judged.clone().all(|task| task.prompt.contains("A lamp.")), "{tasks:?}");

    let next = fixture.spawn(&run);
    fixture.answer_all(4, "LH-0042 at night.", &Value::Null).await;
    fixture.answer_all(2, "", &json!("fine")).await;
    let second = ended(next).await;
    assert!(second.stderr.contains("begins with 4 answers"), "{second:?}");
    assert_eq!(second.code, 8, "{second:?}");
    assert!(second.has("50 % (before 50 %)") && second.has("has no verdict"), "{second:?}");

    // The results can be read without the file, by people in the console.
    let recorded = fixture.recorded_runs().await;
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    assert_eq!((recorded[0].unfinished, recorded[0].variants[0].passed), (0, 1));
    assert_eq!(recorded[1].variants[0].percent(), 50);

    let report = fixture.run(&[&run[..1], &["report"], &run[2..], &["--json"]].concat()).await;
    let data = report.json();
    assert_eq!((&data["unfinished"], &data["variants"][0]["passed"]), (&json!(0), &json!(1)));
    let runs = fixture.json(&[&run[..1], &["ls"], &run[2..]].concat()).await;
    assert_eq!(runs.as_array().unwrap().len(), 2);
    // Another text of the file: the runs stay as they were, and miss nothing.
    let more =
        "\n[[cases]]\nname = \"end\"\nprompt = \"Say goodbye.\"\nchecks = [{ max_words = 3 }]";
    std::fs::write(&file, format!("{FILE}{more}")).unwrap();
    let changed = fixture.run(&[&run[..1], &["report"], &run[2..]].concat()).await;
    assert_eq!((changed.code, changed.has("changed since the run")), (8, true), "{changed:?}");
    assert!(!changed.has("unfinished"), "{changed:?}");
    std::fs::write(&file, FILE).unwrap();
    let earlier = [&run[..1], &["report"], &run[2..], &["--run", runs[1]["run"].as_str().unwrap()]];
    assert!(fixture.run(&earlier.concat()).await.has("does not contain"));
}

#[tokio::test]
async fn the_first_run_creates_a_campaign_and_a_timeout_leaves_the_tasks_to_workers() {
    let fixture = Fixture::new().await;
    let file = fixture.eval();
    let run = ["eval", "run", file.to_str().unwrap(), "--timeout", "1s"];
    let output = fixture.run(&[&run[..], &["--budget-money", "2"]].concat()).await;
    assert_eq!((output.code, output.has("4 answers are missing")), (6, true), "{output:?}");
    let campaigns = fixture.json(&["campaign", "ls"]).await;
    let names: Vec<_> = campaigns.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert!(names.contains(&&json!("eval captions")), "{names:?}");
    let again = fixture.run(&[&run[..], &["--budget-money", "2"]].concat()).await;
    assert_eq!((again.code, again.stderr.contains(" goes on: ")), (6, true), "{again:?}");
    let other = fixture.run(&[&run[..], &["--budget-money", "3"]].concat()).await;
    assert_eq!((other.code, other.has("has another budget")), (2, true), "{other:?}");
    let new = fixture.run(&[&run[..], &["--new"]].concat()).await;
    assert!(new.stderr.contains("begins with 4 answers"), "{new:?}");
}

#[tokio::test]
async fn an_invalid_eval_file_is_refused_with_its_line() {
    let fixture = Fixture::new().await;
    let path = fixture.path().join("wrong.toml");
    std::fs::write(&path, FILE.replace("max_words", "max_word")).unwrap();
    let output = fixture.run(&["eval", "run", path.to_str().unwrap()]).await;
    assert_eq!((output.code, output.has("line 8")), (2, true), "{output:?}");
    assert!(output.has("unknown variant `max_word`"), "{output:?}");
    let missing = fixture.run(&["eval", "report", "nothing.toml"]).await;
    assert_eq!((missing.code, missing.has("nothing.toml")), (2, true), "{missing:?}");
}

#[test]
fn the_shipped_evals_are_valid() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/evals");
    for name in ["copywriter.toml", "reviewer.toml"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let eval =
            Eval::read(name, &text, |file| std::fs::read_to_string(folder.join(file))).unwrap();
        assert!(eval.places().len() >= 9, "{name}");
    }
}
