//! The tools of agents and operators: permissions, effects, and the identity of callers.

mod calls;
mod cascade;
mod claude;
mod contexts;
mod data_access;
mod endpoint;
mod flow_grants;
mod hostile;
mod idempotency;
mod matrix;
mod other_clients;

use std::sync::Arc;

use dalsegno::{
    domain::{
        agents::Library,
        amount::Limit,
        audit::Actor,
        posts::{self, ListDirection, Post, Viewer},
        tasks::{self, Task, TaskFilter},
    },
    tools::{self, Answer, Caller, Operator, Settings, Tools, Turn},
};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{
    conversations::world::{TurnSettings, World},
    facts::setup::set_user,
    turns::fixture::Fixture,
};

const BOSS: &str = "---\nname: boss\ndescription: Leads\nlead: true\ntools: mcp__dalsegno\nwrites_facts: true\nblackboard: { read: [/], write: [/plan] }\n---\nYou lead.\n";
const HELPER: &str =
    "---\nname: helper\ndescription: Helps\ntools: mcp__dalsegno__*\n---\nYou help.\n";
const CLERK: &str = "---\nname: clerk\ndescription: Hands out\ntools: mcp__dalsegno__dispatch, mcp__dalsegno__wait_for_results, mcp__dalsegno__board_post, mcp__dalsegno__trial_hang, mcp__dalsegno__trial_wait, mcp__dalsegno__trial_fail, mcp__dalsegno__trial_panic, mcp__dalsegno__trial_long, mcp__dalsegno__trial_slow_look, mcp__dalsegno__trial_slow_change\ndisallowedTools: mcp__dalsegno__board_post\n---\nYou hand out.\n";
/// Not a lead, but it may add tasks.
const FOREMAN: &str = "---\nname: foreman\ndescription: Hands out\ntools: mcp__dalsegno__dispatch, mcp__dalsegno__flows_start\n---\nYou hand out.\n";
const PAIR: &str = "---\nname: pair\ndescription: Two parts, one after the other\ninputs:\n  topic: What it is about\nsteps:\n  - step: draft\n    agent: helper\n  - step: polish\n    agent: helper\n    after: [draft]\n---\n## draft\nWrite about {{topic}}.\n\n## polish\nPolish it.\n";

/// A campaign with a lead, three other agents and an operator. No worker runs: tests begin turns themselves.
struct Setup {
    fixture: Fixture,
    world: World,
    tools: Tools,
}

impl Setup {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    async fn with(own: &[(&str, &str)]) -> Self {
        let fixture = Fixture::new(own).await;
        let files = [("boss", BOSS), ("helper", HELPER), ("clerk", CLERK), ("foreman", FOREMAN)];
        for (name, text) in files {
            fixture.write_agent(name, text);
        }
        fixture.write_template("pair", PAIR);
        set_user(&fixture, "ann").await;
        let config = fixture.config();
        let library = Arc::new(Library::open(&config.agents).unwrap());
        let settings = Settings::new(&config, Arc::new(fixture.clock.clone()), library);
        let tools = Tools { pool: fixture.pool.clone(), settings: Arc::new(settings) };
        let world = World::over(fixture.pool.clone(), Limit::default()).await;
        Self { fixture, world, tools }
    }

    fn pool(&self) -> &PgPool {
        &self.fixture.pool
    }

    fn operator(&self) -> Caller {
        let actor = Actor::cli("ann", "host");
        Caller::Operator(Operator { campaign_id: self.fixture.campaign.id, actor, is_bound: false })
    }

    /// Begins a turn.
    async fn turn(&self, agent: &str, instance: &str) -> Turn {
        let task = self.fixture.add_for(agent, instance, "Do it.").await;
        self.attempt(&task).await
    }

    /// Begins the next attempt of a task, like a worker that has just claimed the job.
    async fn attempt(&self, task: &Task) -> Turn {
        let lease = self.world.lease();
        let claimed = sqlx::query(
            "update dalsegno.jobs set state = 'running', lease = $2, wait_reason = null where id = $1",
        );
        claimed.bind(task.job_id).bind(lease).execute(self.pool()).await.unwrap();
        let (_, begun) = self.world.begin(task, lease, TurnSettings::default()).await;
        let library = Library::open(&self.fixture.config().agents).unwrap();
        Turn {
            campaign_id: task.campaign_id,
            agent: library.current().agent(&task.agent).unwrap().clone(),
            instance: task.instance.clone(),
            session_id: begun.session_id,
            task_id: task.id,
            turn: begun.turn,
            job_id: task.job_id,
            lease,
        }
    }

    async fn caller(&self, agent: &str) -> Caller {
        Caller::Turn(self.turn(agent, "main").await)
    }

    async fn call(&self, caller: &Caller, name: &str, arguments: Value) -> Answer {
        tools::call(&self.tools, caller, name, arguments).await
    }

    /// Returns the answer of a call that must succeed.
    async fn call_tool(&self, caller: &Caller, name: &str, arguments: Value) -> Value {
        let answer = self.call(caller, name, arguments).await;
        assert!(!answer.is_error, "{name}: {}", answer.text);
        serde_json::from_str(&answer.text).unwrap_or_else(|_| json!(answer.text))
    }

    /// Returns the error text of a call that must fail.
    async fn fail_tool(&self, caller: &Caller, name: &str, arguments: Value) -> String {
        let answer = self.call(caller, name, arguments).await;
        assert!(answer.is_error, "{name}: {}", answer.text);
        answer.text
    }

    async fn posts(&self) -> Vec<Post> {
        let along = ListDirection::After(0);
        let campaign_id = self.fixture.campaign.id;
        posts::list_page(self.pool(), campaign_id, Viewer::All, along, 1000).await.unwrap()
    }

    async fn tasks(&self) -> Vec<Task> {
        let campaign_id = Some(self.fixture.campaign.id);
        let filter = TaskFilter { campaign_id, ..TaskFilter::default() };
        let page = dalsegno::domain::Page { after: None, limit: 1000 };
        let mut conn = self.pool().acquire().await.unwrap();
        tasks::list(&mut conn, &filter, page).await.unwrap()
    }

    /// Returns `action subject actor` lines, oldest first.
    async fn audit(&self) -> Vec<String> {
        sqlx::query_scalar("select concat_ws(' ', action, subject, actor_kind, actor) from dalsegno.audit order by id")
            .fetch_all(self.pool())
            .await
            .unwrap()
    }

    /// Returns all state that a call could change.
    async fn state(&self) -> String {
        sqlx::query_scalar(
            "select concat_ws(' ', (select count(*) from dalsegno.posts), (select count(*) from dalsegno.tasks),
                    (select count(*) from dalsegno.flows), (select sum(version) from dalsegno.blackboards),
                    (select count(*) from dalsegno.tool_calls), (select count(*) from dalsegno.facts),
                    (select concat_ws(' ', count(*), sum(version), count(revoked_at)) from dalsegno.memory_items))",
        )
        .fetch_one(self.pool())
        .await
        .unwrap()
    }
}

/// Returns every tool that changes something, with valid arguments.
fn changes() -> [(&'static str, Value); 9] {
    let item =
        |name: &str| json!({ "name": name, "title": "Tides", "text": "High water is at six." });
    [
        ("board_post", json!({ "text": "Ahoy." })),
        ("dispatch", json!({ "tasks": [{ "agent": "helper", "text": "Part one." }] })),
        ("flows_start", json!({ "template": "pair", "inputs": { "topic": "tides" } })),
        ("blackboard_write", json!({ "patch": { "plan": { "parts": 10 } } })),
        ("edicts_publish", item("tone")),
        ("edicts_revoke", json!({ "name": "tone" })),
        ("records_publish", item("tides")),
        ("journals_write", item("note")),
        ("facts_write", json!({ "attribute": "Diet", "text": "Eats no meat." })),
    ]
}
