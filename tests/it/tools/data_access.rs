//! The data that each tool reaches, for every role and with every kind of token. All combinations are tried and
//! compared with the committed matrix. A denied or refused call changes nothing, and a denied call adds an audit line.

use std::{collections::BTreeSet, net::SocketAddr};

use dalsegno::{
    domain::{Page, audit::Actor, tasks, turn_tokens},
    tools::{self, Answer, Caller, Operator},
};
use serde_json::{Value, json};

use super::{
    Setup,
    endpoint::{BEFORE, call, send_message},
};

const OWN: &str = "its own";
const OF_ANOTHER_AGENT: &str = "another agent's";
const OF_ANOTHER_AGENT_BY_NAME: &str = "another agent's, by its name";
const OF_THE_CAMPAIGN: &str = "the campaign's";
const NOT_GRANTED: &str = "the campaign's, not granted";
const FOREIGN: &str = "another campaign's";

/// A call, and a word that its answer contains if the call reaches its target.
struct AccessCase {
    tool: &'static str,
    whose: &'static str,
    arguments: Value,
    mark: String,
}

/// A caller that tries each call. Operators have no token.
struct TestCaller {
    name: &'static str,
    caller: Caller,
    token: Option<String>,
    handed_out: Option<String>,
}

/// Names that only other agents know.
struct PlantedNames {
    foreign_post: String,
    foreign_task: String,
    foreign_session: String,
    others_task: String,
    others_session: String,
}

fn item(name: &str) -> Value {
    json!({ "name": name, "title": name, "text": name })
}

fn rows(tester: &TestCaller, planted: &PlantedNames) -> Vec<AccessCase> {
    let name = tester.name;
    let own = format!("quay-{name}");
    let row = |tool, whose, arguments, mark: &str| {
        let mark = mark.to_owned();
        AccessCase { tool, whose, arguments, mark }
    };
    let with = |mut item: Value, key: &str, value: &str| {
        item[key] = json!(value);
        item
    };
    let wait = |id: &str| json!({ "task_ids": [id], "seconds": 0 });
    let handed_out = tester.handed_out.as_deref().unwrap_or("none");
    let words = |words: &str| json!({ "words": words });
    let in_session = |id: &str| json!({ "session_id": id });
    let turn_pair = |id: &str| json!({ "session_id": id, "from": 1, "to": 1 });
    let PlantedNames { foreign_session, others_session, .. } = planted;
    let new = format!("new-{name}");
    vec![
        row("edicts_list", OF_THE_CAMPAIGN, json!({}), "tide-edict"),
        row("edicts_list", FOREIGN, json!({}), "buoy"),
        row("edicts_read", OF_THE_CAMPAIGN, json!({ "name": "tide-edict" }), "tide"),
        row("edicts_read", FOREIGN, json!({ "name": "buoy-edict" }), "buoy"),
        row("edicts_publish", OF_THE_CAMPAIGN, item(&new), &new),
        row("edicts_revoke", OF_THE_CAMPAIGN, json!({ "name": format!("old-{name}") }), ""),
        row("edicts_revoke", FOREIGN, json!({ "name": "buoy-edict" }), ""),
        row("records_list", OF_THE_CAMPAIGN, json!({}), "tide-record"),
        row("records_list", FOREIGN, json!({}), "buoy"),
        row("records_read", OF_THE_CAMPAIGN, json!({ "name": "tide-record" }), "tide"),
        row("records_read", FOREIGN, json!({ "name": "buoy-record" }), "buoy"),
        row("records_publish", OF_THE_CAMPAIGN, item(&new), &new),
        row(
            "records_publish",
            OF_ANOTHER_AGENT,
            with(item("mole-record"), "text", &new),
            "mole-record",
        ),
        row("records_publish", OF_ANOTHER_AGENT_BY_NAME, with(item("x"), "author", "clerk"), ""),
        row("journals_list", OWN, json!({}), &own),
        row("journals_list", OF_ANOTHER_AGENT, json!({}), "mole-note"),
        row("journals_list", OF_ANOTHER_AGENT_BY_NAME, json!({ "agent": "clerk" }), "mole-note"),
        row("journals_list", FOREIGN, json!({}), "buoy"),
        row("journals_read", OWN, json!({ "name": own }), &own),
        row("journals_read", OF_ANOTHER_AGENT, json!({ "name": "mole-note" }), "mole"),
        row(
            "journals_read",
            OF_ANOTHER_AGENT_BY_NAME,
            json!({ "name": "mole-note", "agent": "clerk" }),
            "mole",
        ),
        row("journals_read", FOREIGN, json!({ "name": "buoy-note", "agent": "clerk" }), "buoy"),
        row("journals_write", OWN, item(&new), &new),
        row("journals_write", OF_ANOTHER_AGENT_BY_NAME, with(item("x"), "agent", "clerk"), ""),
        row(
            "facts_write",
            OF_THE_CAMPAIGN,
            json!({ "attribute": name, "text": format!("Likes the {name} best.") }),
            "fact_id",
        ),
        row(
            "facts_write",
            FOREIGN,
            json!({ "attribute": name, "text": "Likes buoys best.", "user": "bea" }),
            "",
        ),
        row("recall", OWN, words("quay"), &own),
        row("recall", OF_ANOTHER_AGENT, words("mole"), "mole-note"),
        row("recall", OF_THE_CAMPAIGN, words("tide"), "tide-record"),
        row("recall", FOREIGN, words("buoy"), "buoy-"),
        row("board_history", OWN, json!({ "limit": 100 }), &own),
        row("board_history", OF_ANOTHER_AGENT, json!({ "limit": 100 }), "mole-post"),
        row("board_history", FOREIGN, json!({ "limit": 100 }), "buoy"),
        row("board_post", OWN, json!({ "text": new }), ""),
        row("board_post", OF_ANOTHER_AGENT_BY_NAME, json!({ "text": new, "sender": "clerk" }), ""),
        row("board_post", FOREIGN, json!({ "text": new, "reply_to": planted.foreign_post }), ""),
        row(
            "dispatch",
            OF_THE_CAMPAIGN,
            json!({ "tasks": [{ "agent": "clerk", "text": new }] }),
            "task_id",
        ),
        row("tasks_list", OWN, json!({ "limit": 100 }), &own),
        row("tasks_list", OF_ANOTHER_AGENT, json!({ "limit": 100 }), "mole-task"),
        row(
            "tasks_list",
            OF_ANOTHER_AGENT_BY_NAME,
            json!({ "agent": "clerk", "limit": 100 }),
            "mole-task",
        ),
        row("tasks_list", FOREIGN, json!({ "limit": 100 }), "buoy"),
        row("wait_for_results", OWN, wait(handed_out), "queued"),
        row("wait_for_results", OF_ANOTHER_AGENT, wait(&planted.others_task), "queued"),
        row("wait_for_results", FOREIGN, wait(&planted.foreign_task), "queued"),
        row("flow_templates_list", OF_THE_CAMPAIGN, json!({}), "pair"),
        row(
            "flows_start",
            OF_THE_CAMPAIGN,
            json!({ "template": "pair", "inputs": { "topic": name } }),
            "flow_id",
        ),
        row("blackboard_read", OF_THE_CAMPAIGN, json!({}), "tide-plan"),
        row("blackboard_read", NOT_GRANTED, json!({}), "mole-secret"),
        row("blackboard_read", FOREIGN, json!({}), "buoy"),
        row("blackboard_write", OF_THE_CAMPAIGN, json!({ "patch": { "plan": { name: 1 } } }), ""),
        row("blackboard_write", NOT_GRANTED, json!({ "patch": { "secret": { name: 1 } } }), ""),
        row("search_transcript", OWN, words(&own), &own),
        row("search_transcript", OF_ANOTHER_AGENT, words("mole-task"), "mole-task"),
        row("search_transcript", FOREIGN, words("buoy"), "buoy"),
        row("status", OF_THE_CAMPAIGN, json!({}), "clerk"),
        row("turns_list", OF_THE_CAMPAIGN, in_session(others_session), others_session),
        row("turns_list", FOREIGN, in_session(foreign_session), foreign_session),
        // Their turns run, so no context is stored yet.
        row("context_show", OF_THE_CAMPAIGN, in_session(others_session), "system"),
        row("context_show", FOREIGN, in_session(foreign_session), "system"),
        row("context_diff", OF_THE_CAMPAIGN, turn_pair(others_session), "parts"),
        row("context_diff", FOREIGN, turn_pair(foreign_session), "parts"),
    ]
}

fn session_of(caller: &Caller) -> String {
    let Caller::Turn(turn) = caller else { unreachable!("the turn has begun") };
    turn.session_id.to_string()
}

/// Returns the word of the matrix for an answer.
fn outcome(answer: &Answer, mark: &str) -> &'static str {
    match (answer.is_error, answer.text.contains(mark)) {
        (true, _) if answer.text.contains("you have no tool") => "denied",
        (true, _) => "refused",
        (false, true) => "yes",
        (false, false) => "hidden",
    }
}

const HEAD: &str = "\
# Whose data each tool reaches

`tests/it/tools/data_access.rs` makes all of these calls and compares what comes of them with this file. *denied*: the caller has no such tool, which
leaves a line in the audit log. *refused*: the call is answered in words. *hidden*: the answer has nothing of it. The last three columns
are tokens that are not of this campaign's turns. *stranger*: the lead of another campaign in a turn that runs, who asks for what belongs to
this campaign and its lead; *elsewhere*: what comes of it is of the stranger's own campaign or of all of them, and this one is as before.
*ended*: turns of all three roles that have ended. *unknown*: tokens that were never given out. With the last two nothing is reached, and no
tool is called.

An agent has `mcp__dalsegno__*` in its file, the named one each tool by its name, a path of the blackboard and `writes_facts`, the lead the same. An
operator has nothing of its own.

| tool | whose data | agent | named | lead | operator | stranger | ended | unknown |
|---|---|---|---|---|---|---|---|---|
";

#[tokio::test]
async fn every_tool_reaches_exactly_what_the_committed_matrix_lists() {
    let setup = setup().await;
    let planted = setup.plant_names().await;
    let mut testers = Vec::new();
    for name in ["plain", "named", "chief", "ann"] {
        testers.push(setup.test_caller(name).await);
    }
    let endpoint = setup.endpoint().await;
    let at = (endpoint.address, "/mcp");
    let mut cells: Vec<Vec<&str>> = Vec::new();
    for tester in &testers {
        for (number, row) in rows(tester, &planted).iter().enumerate() {
            let (before, n_lines) = (setup.state().await, setup.audit().await.len());
            let answer = match &tester.token {
                Some(token) => {
                    let asked = call(row.tool, &row.arguments);
                    let said =
                        send_message(at, token, BEFORE, "tools/call", asked).await.expect(200);
                    let text = said["result"]["content"][0]["text"].as_str().unwrap().to_owned();
                    Answer { text, is_error: said["result"]["isError"] == true }
                }
                None => setup.call(&tester.caller, row.tool, row.arguments.clone()).await,
            };
            let outcome = outcome(&answer, &row.mark);
            let lines = setup.audit().await.split_off(n_lines);
            match outcome {
                "denied" => {
                    assert_eq!(lines.len(), 1, "{lines:?}");
                    assert!(lines[0].starts_with(&format!("tool.deny {} ", row.tool)), "{lines:?}");
                    assert_eq!(setup.state().await, before, "{} {}", row.tool, row.whose);
                }
                "refused" => {
                    assert_eq!(lines, Vec::<String>::new(), "{} {}", row.tool, row.whose);
                    assert_eq!(setup.state().await, before, "{} {}", row.tool, row.whose);
                }
                _ => {}
            }
            cells.resize_with(cells.len().max(number + 1), Vec::new);
            cells[number].push(outcome);
        }
    }
    let stranger = setup.foreign_token().await;
    let lead = testers.iter().find(|tester| tester.name == "chief").unwrap();
    for (row, cells) in rows(lead, &planted).iter().zip(&mut cells) {
        cells.push(setup.try_foreign_token(at, &stranger, row).await);
    }
    setup.end_turns().await;
    let before = setup.state().await;
    for tester in testers.iter().filter(|tester| tester.token.is_some()) {
        for (number, row) in rows(tester, &planted).into_iter().enumerate() {
            let n_lines = setup.audit().await.len();
            let asked = || call(row.tool, &row.arguments);
            let token = tester.token.as_ref().unwrap();
            send_message(at, token, BEFORE, "tools/call", asked()).await.problem(401, "no_turn");
            let lines = setup.audit().await.split_off(n_lines);
            // The clock stands still, and a token causes at most one line per minute.
            let line = (number == 0).then(|| format!("tool.deny token agent {}", tester.name));
            assert_eq!(lines, Vec::from_iter(line));
            let unknown = format!("{}{}", turn_tokens::PREFIX, "0".repeat(64));
            send_message(at, &unknown, BEFORE, "tools/call", asked()).await.problem(401, "no_turn");
        }
    }
    assert_eq!(setup.state().await, before);

    let rows = rows(&testers[0], &planted);
    let tried: BTreeSet<&str> = rows.iter().map(|row| row.tool).collect();
    assert_eq!(tried, tools::table().iter().map(|line| line.tool).collect());
    let mut matrix = HEAD.to_owned();
    for (row, cells) in rows.iter().zip(&cells) {
        let live = cells.join(" | ");
        matrix.push_str(&format!("| {} | {} | {live} | 401 | 401 |\n", row.tool, row.whose));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/mcp-matrix.md");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let written = concat!(env!("CARGO_TARGET_TMPDIR"), "/mcp-matrix.md");
    std::fs::write(written, &matrix).unwrap();
    assert!(committed == matrix, "docs/reference/mcp-matrix.md differs from {written}");
}

async fn setup() -> Setup {
    let setup = Setup::new().await;
    for name in ["boss", "helper"] {
        setup.fixture.remove_agent(name);
    }
    let by_name: Vec<String> =
        tools::table().iter().map(|line| format!("mcp__dalsegno__{}", line.tool)).collect();
    let paths = "blackboard: { read: [/plan], write: [/plan] }\nwrites_facts: true\n";
    let all = "mcp__dalsegno";
    for (name, tools, more) in [
        ("plain", "mcp__dalsegno__*", String::new()),
        ("named", &*by_name.join(", "), paths.to_owned()),
        ("chief", all, format!("lead: true\n{paths}")),
        ("clerk", "mcp__dalsegno, mcp__dalsegno__dispatch", String::new()),
    ] {
        let file =
            format!("---\nname: {name}\ndescription: D\ntools: {tools}\n{more}---\nYou work.\n");
        setup.fixture.write_agent(name, &file);
    }
    let pair = super::PAIR.replace("helper", "clerk");
    setup.fixture.write_template("pair", &pair);
    setup
}

impl Setup {
    /// Creates data that belongs to all, to another agent, and to another campaign.
    async fn plant_names(&self) -> PlantedNames {
        let operator = self.operator();
        for name in ["tide-edict", "old-plain", "old-named", "old-chief", "old-ann"] {
            self.call_tool(&operator, "edicts_publish", item(name)).await;
        }
        self.call_tool(&operator, "records_publish", item("tide-record")).await;
        let document =
            json!({ "patch": { "plan": { "tide-plan": 1 }, "secret": { "mole-secret": 1 } } });
        self.call_tool(&operator, "blackboard_write", document).await;
        self.call_tool(&operator, "board_post", json!({ "text": "mole-post", "to": ["clerk"] }))
            .await;
        let clerk = self.begin_turn("clerk", "Do the mole-task.").await;
        let others_session = session_of(&clerk);
        self.call_tool(&clerk, "journals_write", item("mole-note")).await;
        self.call_tool(&clerk, "records_publish", item("mole-record")).await;
        let others_task = self.add_idle_task(&clerk, "Count the boats.").await;

        let actor = Actor::cli("ann", "host");
        let campaign_id = self.world.campaign.id;
        let foreign = Caller::Operator(Operator { campaign_id, actor, is_bound: false });
        for tool in ["edicts_publish", "records_publish"] {
            let name = format!("buoy-{}", &tool[..tool.len() - "s_publish".len()]);
            self.call_tool(&foreign, tool, item(&name)).await;
        }
        self.call_tool(&foreign, "blackboard_write", json!({ "patch": { "plan": { "buoy": 1 } } }))
            .await;
        let post = json!({ "text": "buoy", "to": ["all"] });
        let post = self.call_tool(&foreign, "board_post", post).await;
        let foreign_task = self.add_idle_task(&foreign, "Count the buoys.").await;
        // For the same agents as those that will look; the lead's is that of the stranger.
        for agent in ["plain", "named"] {
            let asked = json!({ "tasks": [{ "agent": agent, "text": "Count the buoys." }] });
            self.call_tool(&foreign, "dispatch", asked).await;
        }
        let filter = tasks::TaskFilter { campaign_id: Some(campaign_id), ..Default::default() };
        let mut conn = self.pool().acquire().await.unwrap();
        let page = Page { after: None, limit: 10 };
        let tasks = tasks::list(&mut conn, &filter, page).await.unwrap();
        let task = tasks.iter().find(|task| task.id.to_string() == foreign_task).unwrap();
        let clerk = Caller::Turn(self.attempt(task).await);
        let foreign_session = session_of(&clerk);
        self.call_tool(&clerk, "journals_write", item("buoy-note")).await;
        let foreign_post = post["post_id"].as_str().unwrap().to_owned();
        PlantedNames { foreign_post, foreign_task, foreign_session, others_task, others_session }
    }

    /// Creates one of the roles, with some data of its own.
    async fn test_caller(&self, name: &'static str) -> TestCaller {
        if name == "ann" {
            let caller = self.operator();
            let handed_out = Some(self.add_idle_task(&caller, "Count the boats.").await);
            return TestCaller { name, caller, token: None, handed_out };
        }
        let own = format!("quay-{name}");
        let caller = self.begin_turn(name, &format!("Do {own}.")).await;
        self.call_tool(&caller, "journals_write", item(&own)).await;
        self.call_tool(&self.operator(), "board_post", json!({ "text": own, "to": [name] })).await;
        let Caller::Turn(turn) = &caller else { unreachable!("the turn has begun") };
        let token = Some(self.token(turn).await);
        let may = tools::list_offered(&caller).iter().any(|spec| spec.name == "dispatch");
        let handed_out = match may {
            true => Some(self.add_idle_task(&caller, "Count the boats.").await),
            false => None,
        };
        TestCaller { name, caller, token, handed_out }
    }

    /// Returns the token of a running turn of another campaign's lead.
    async fn foreign_token(&self) -> String {
        let campaign_id = self.world.campaign.id;
        let operator = Caller::Operator(Operator {
            campaign_id,
            actor: Actor::cli("ann", "host"),
            is_bound: false,
        });
        let asked = json!({ "tasks": [{ "agent": "chief", "text": "Count the buoys." }] });
        let told = self.call_tool(&operator, "dispatch", asked).await;
        let id = told["tasks"][0]["task_id"].as_str().unwrap().parse().unwrap();
        let turn = self.attempt(&self.world.task(id).await).await;
        assert!(turn.is_lead() && turn.campaign_id != self.fixture.campaign.id);
        self.token(&turn).await
    }

    async fn try_foreign_token(
        &self,
        at: (SocketAddr, &str),
        token: &str,
        row: &AccessCase,
    ) -> &'static str {
        if row.whose == FOREIGN {
            return "-";
        }
        let before = self.state_of_campaign().await;
        let asked = call(row.tool, &row.arguments);
        let said = send_message(at, token, BEFORE, "tools/call", asked).await.expect(200);
        let text = said["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        assert_eq!(self.state_of_campaign().await, before, "{} {}", row.tool, row.whose);
        for word in ["tide", "mole", "quay"] {
            let is_asked = row.arguments.to_string().contains(word);
            assert!(is_asked || !text.contains(word), "{} {}: {text}", row.tool, row.whose);
        }
        let answer = Answer { text, is_error: said["result"]["isError"] == true };
        match outcome(&answer, &row.mark) {
            "yes" => "elsewhere",
            other => other,
        }
    }

    /// Returns all state of this campaign that a call could change.
    async fn state_of_campaign(&self) -> String {
        sqlx::query_scalar(
            "select concat_ws(' ', (select count(*) from dalsegno.posts where campaign_id = $1),
                    (select concat_ws(' ', count(*), md5(string_agg(prompt, ' ' order by id))) from dalsegno.tasks where campaign_id = $1),
                    (select count(*) from dalsegno.flows where campaign_id = $1),
                    (select sum(version) from dalsegno.blackboards where campaign_id = $1),
                    (select concat_ws(' ', count(*), sum(version), count(revoked_at), md5(string_agg(body, ' ' order by id)))
                       from dalsegno.memory_items where campaign_id = $1))",
        )
        .bind(self.fixture.campaign.id)
        .fetch_one(self.pool())
        .await
        .unwrap()
    }

    async fn begin_turn(&self, agent: &str, prompt: &str) -> Caller {
        let task = self.fixture.add_for(agent, "main", prompt).await;
        Caller::Turn(self.attempt(&task).await)
    }

    /// Adds a task for an agent that begins no turn, so that no turn waits behind it.
    async fn add_idle_task(&self, caller: &Caller, text: &str) -> String {
        let asked = json!({ "tasks": [{ "agent": "clerk_9", "text": text }] });
        let told = self.call_tool(caller, "dispatch", asked).await;
        told["tasks"][0]["task_id"].as_str().unwrap().to_owned()
    }

    async fn end_turns(&self) {
        let ended = "update dalsegno.turns set state = 'failed', error = 'no room', ended_at = now() \
                     where state = 'running'";
        sqlx::query(ended).execute(self.pool()).await.unwrap();
    }
}
