//! The flow templates that a turn may start: those of its task, or those of its agent's file.

use dalsegno::{domain::tasks, tools::Caller};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{PAIR, Setup};

const STARTER: &str = "---\nname: starter\ndescription: Starts\ntools: mcp__dalsegno__flows_start, mcp__dalsegno__flow_templates_list\n---\nYou start.\n";

impl Setup {
    async fn with_starter(file: &str) -> Self {
        let setup = Self::new().await;
        setup.fixture.write_agent("starter", file);
        setup.fixture.write_template("solo", &PAIR.replace("name: pair", "name: solo"));
        setup
    }

    /// Begins a turn of this instance, in a task with this SQL list of flow templates.
    async fn starter(&self, instance: &str, names: &str) -> Caller {
        let add = format!(
            "select task_id from dalsegno.add_task($1, 'starter', 'Do it.', instance => $2, flow_templates => {names})"
        );
        let add = sqlx::query_scalar(sqlx::AssertSqlSafe(add));
        let add = add.bind(self.fixture.campaign.id).bind(instance);
        let id: Uuid = add.fetch_one(self.pool()).await.unwrap();
        self.attempt_of(id).await
    }

    async fn attempt_of(&self, id: Uuid) -> Caller {
        let task = tasks::get(self.pool(), id).await.unwrap();
        Caller::Turn(self.attempt(&task).await)
    }

    async fn listed(&self, caller: &Caller) -> Vec<Value> {
        let listed = self.call_tool(caller, "flow_templates_list", json!({})).await;
        let listed = listed["flow_templates"].as_array().unwrap().iter();
        listed.map(|template| template["template"].clone()).collect()
    }
}

fn start(template: &str) -> Value {
    json!({ "template": template, "inputs": { "topic": "tides" } })
}

#[tokio::test]
async fn a_turn_starts_only_the_flow_templates_of_its_task() {
    let setup = Setup::with_starter(STARTER).await;
    let free = setup.starter("main", "null").await;
    assert_eq!(setup.listed(&free).await, ["pair", "solo"]);
    let one = setup.starter("one", "'{solo}'").await;
    assert_eq!(setup.listed(&one).await, ["solo"]);
    let words = setup.fail_tool(&one, "flows_start", start("pair")).await;
    assert!(words.contains("`pair` is not granted") && words.ends_with("start: solo"), "{words}");
    let words = setup.fail_tool(&one, "flows_start", start("trio")).await;
    assert!(words.contains("`trio` is unknown") && !words.contains("pair"), "{words}");
    setup.call_tool(&one, "flows_start", start("solo")).await;
    let none = setup.starter("none", "'{}'").await;
    assert_eq!(setup.listed(&none).await, [""; 0]);
    let words = setup.fail_tool(&none, "flows_start", start("solo")).await;
    assert!(words.contains("may start no flow"), "{words}");
    // Operators are not limited.
    setup.call_tool(&setup.operator(), "flows_start", start("pair")).await;
}

#[tokio::test]
async fn the_agent_file_is_the_default_and_a_continuation_keeps_the_list_of_its_task() {
    let file = STARTER.replace("name: starter", "name: starter\nflows: [pair]");
    let setup = Setup::with_starter(&file).await;
    let by_file = setup.starter("main", "null").await;
    assert_eq!(setup.listed(&by_file).await, ["pair"]);
    setup.fail_tool(&by_file, "flows_start", start("solo")).await;
    let by_task = setup.starter("one", "'{solo}'").await;
    assert_eq!(setup.listed(&by_task).await, ["solo"]);
    let Caller::Turn(turn) = &by_task else { panic!("a turn calls") };
    let next = setup.fixture.add_for("starter", "next", "Go on.").await;
    let link = "update dalsegno.tasks set continues_id = $2 where id = $1";
    sqlx::query(link).bind(next.id).bind(turn.task_id).execute(setup.pool()).await.unwrap();
    let next = setup.attempt_of(next.id).await;
    assert_eq!(setup.listed(&next).await, ["solo"]);
}
