//! The effect of each tool, and the actor that the audit log names.

use dalsegno::{
    domain::{blackboard, messages::Span, tasks::State},
    tools::{self, Caller},
};
use serde_json::json;

use super::{Setup, changes};

#[tokio::test]
async fn changes_by_a_tool_record_the_calling_agent() {
    let setup = Setup::new().await;
    let turn = setup.turn("boss", "main").await;
    let boss = Caller::Turn(turn.clone());
    for (name, arguments) in changes() {
        setup.call_tool(&boss, name, arguments).await;
    }
    let posts = setup.posts().await;
    assert_eq!((posts[0].sender.as_str(), posts[0].text.as_str()), ("boss", "Ahoy."));
    assert_eq!((posts[0].task_id, posts[0].turn), (Some(turn.task_id), Some(turn.turn)));
    assert_eq!(posts[0].audience, ["operator"]);
    let written = blackboard::get(setup.pool(), turn.campaign_id).await.unwrap();
    assert_eq!(written.document, json!({ "plan": { "parts": 10 } }));
    let history = blackboard::history(setup.pool(), turn.campaign_id, None, 10).await.unwrap();
    assert_eq!((history[0].actor.as_str(), history[0].task_id), ("boss/main", Some(turn.task_id)));
    let parents: Vec<(String, Option<uuid::Uuid>, Option<String>)> = sqlx::query_as(
        "select prompt, parent_id, added_by from dalsegno.tasks where id <> $1 order by prompt",
    )
    .bind(turn.task_id)
    .fetch_all(setup.pool())
    .await
    .unwrap();
    let boss_s = || Some("boss".to_owned());
    assert_eq!(parents[0], ("Part one.".to_owned(), Some(turn.task_id), boss_s()));
    assert_eq!(parents[1], ("Polish it.".to_owned(), Some(turn.task_id), boss_s()));
    let items: Vec<String> = sqlx::query_scalar(
        "select concat_ws(' ', kind, name, owner, author, task_id, revoked_by) from dalsegno.memory_items order by kind",
    )
    .fetch_all(setup.pool())
    .await
    .unwrap();
    let by = format!("boss {}", turn.task_id);
    let expected = [
        format!("edict tone  {by} boss"),
        format!("journal note boss {by}"),
        format!("record tides  {by}"),
    ];
    assert_eq!(items, expected);
    let [fact] = &crate::facts::all(setup.pool(), "ann", true).await[..] else { panic!("a fact") };
    assert_eq!((fact.author.as_str(), fact.task_id), ("boss", Some(turn.task_id)));
    let lines = changes().map(|(name, _)| format!("tool.call {name} agent boss"));
    assert_eq!(setup.audit().await, lines);
}

#[tokio::test]
async fn a_post_by_an_operator_records_the_operator_and_adds_tasks_for_its_mentions() {
    let setup = Setup::new().await;
    let operator = setup.operator();
    let told = setup.call_tool(&operator, "board_post", json!({ "text": "@helper look" })).await;
    assert_eq!(told["asked_tasks"].as_array().unwrap().len(), 1);
    let of_agents = ["journals_write", "facts_write"];
    for (name, arguments) in changes().into_iter().filter(|(name, _)| !of_agents.contains(name)) {
        setup.call_tool(&operator, name, arguments).await;
    }
    let senders: Vec<String> = setup.posts().await.into_iter().map(|post| post.sender).collect();
    assert_eq!(senders, ["operator", "operator"]);
    let all = setup.audit().await;
    assert!(all.iter().all(|line| line.ends_with("cli ann@host")), "{all:?}");
    // All changes except those of a journal and of facts, and the post before them.
    assert_eq!(all.len(), changes().len() - 1);
}

#[tokio::test]
async fn a_board_is_read_as_its_viewer_sees_it() {
    let setup = Setup::new().await;
    let (boss, helper) = (setup.caller("boss").await, setup.caller("helper").await);
    let to = |names: &[&str]| json!({ "text": format!("for {names:?}"), "to": names });
    for names in [&["helper"][..], &["clerk"], &["all"], &["helper/2"]] {
        setup.call_tool(&boss, "board_post", to(names)).await;
    }
    let seen = async |caller: &Caller| {
        let read = setup.call_tool(caller, "board_history", json!({ "limit": 10 })).await;
        let posts = read["posts"].as_array().unwrap().clone();
        posts.iter().map(|post| post["seq"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(seen(&boss).await, [4, 3, 2, 1]);
    assert_eq!(seen(&setup.operator()).await, [4, 3, 2, 1]);
    assert_eq!(seen(&helper).await, [3, 1]);
    let second = Caller::Turn(setup.turn("helper", "2").await);
    assert_eq!(seen(&second).await, [4, 3]);
}

#[tokio::test]
async fn a_long_answer_is_paged_without_loss() {
    let setup = Setup::new().await;
    let boss = setup.caller("boss").await;
    for number in 0..30 {
        let text = format!("{number} {}", "\"é\n".repeat(1_500));
        setup.call_tool(&boss, "board_post", json!({ "text": text })).await;
    }
    let (mut cursor, mut read, mut n_pages) = (None::<String>, String::new(), 0);
    loop {
        let mut arguments = json!({ "limit": 7 });
        arguments.as_object_mut().unwrap().extend(cursor.map(|c| ("cursor".to_owned(), json!(c))));
        let answer = setup.call(&boss, "board_history", arguments).await;
        assert!(!answer.is_error && answer.text.chars().count() <= 50_000);
        n_pages += 1;
        let Some((page, rest)) = answer.text.split_once("\n\n[There is more") else {
            read.push_str(&answer.text);
            break;
        };
        read.push_str(page);
        cursor = Some(rest.split('"').nth(3).unwrap().to_owned());
    }
    assert!(n_pages > 5, "{n_pages}");
    let lists = serde_json::Deserializer::from_str(&read).into_iter::<serde_json::Value>();
    let seqs: Vec<i64> = lists
        .flat_map(|list| list.unwrap()["posts"].as_array().unwrap().clone())
        .map(|post| post["seq"].as_i64().unwrap())
        .collect();
    assert_eq!(seqs, (1..=30).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_change_with_a_truncated_answer_is_not_repeated() {
    const PAGE_CHARS: usize = 60;
    let setup = Setup::new().await;
    let boss = setup.caller("boss").await;
    let mut n_cut = 0;
    for (name, mut arguments) in changes() {
        if name == "dispatch" {
            let task = json!({ "agent": "helper", "text": "Part." });
            arguments = json!({ "tasks": [task, task, task] });
        }
        let answer =
            tools::call_for(&setup.tools, &boss, name, arguments.clone(), PAGE_CHARS).await;
        assert!(!answer.is_error && !answer.text.contains("cursor"), "{name}: {}", answer.text);
        if answer.text.chars().count() > PAGE_CHARS {
            assert!(answer.text.ends_with("do not call again for it.]"), "{}", answer.text);
            n_cut += 1;
        }
        arguments["cursor"] = json!("60");
        let words = setup.fail_tool(&boss, name, arguments).await;
        assert!(words.contains("cursor"), "{name}: {words}");
    }
    assert!(n_cut >= 3, "{n_cut}");
    let handed = setup.tasks().await.into_iter().filter(|task| task.prompt == "Part.");
    assert_eq!(handed.count(), 3);
}

#[tokio::test]
async fn everything_that_recall_finds_can_be_read() {
    let setup = Setup::new().await;
    let boss = setup.caller("boss").await;
    for number in 0..12 {
        let item = json!({ "name": format!("tides-{number}"), "title": "Tides", "text": "High water is at six." });
        setup.call_tool(&boss, "records_publish", item).await;
    }
    let asked = json!({ "words": "water", "limit": 30 });
    let whole = setup.call(&boss, "recall", asked.clone()).await.text;
    let (mut read, mut arguments) = (String::new(), asked);
    loop {
        let answer = tools::call_for(&setup.tools, &boss, "recall", arguments.clone(), 1_000).await;
        assert!(!answer.is_error, "{}", answer.text);
        let Some((page, rest)) = answer.text.split_once("\n\n[There is more") else {
            read.push_str(&answer.text);
            break;
        };
        read.push_str(page);
        arguments["cursor"] = json!(rest.split('"').nth(3).unwrap());
    }
    assert_eq!(read, whole);
    assert!(whole.contains("tides-0") && whole.contains("tides-11"), "{whole}");
}

#[tokio::test]
async fn dispatched_tasks_run_and_their_results_reach_the_dispatching_agent() {
    let setup = Setup::new().await;
    let (clerk, helper) = (setup.caller("clerk").await, setup.caller("helper").await);
    let handed =
        json!([{ "agent": "helper_2", "text": "One." }, { "agent": "helper/3", "text": "Two." }]);
    let told = setup.call_tool(&clerk, "dispatch", json!({ "tasks": handed })).await;
    let ids: Vec<&str> =
        told["tasks"].as_array().unwrap().iter().map(|t| t["task_id"].as_str().unwrap()).collect();
    assert_eq!(told["tasks"][0]["agent"], "helper_2");
    let wait = json!({ "task_ids": ids, "seconds": 0 });
    let seen = setup.call_tool(&clerk, "wait_for_results", wait.clone()).await;
    assert_eq!(
        (seen["not_ended"].as_i64(), seen["results"][0]["state"].as_str()),
        (Some(2), Some("queued"))
    );
    sqlx::query("update dalsegno.tasks set state = 'done', result = 'It is done.', started_at = now(), ended_at = now() where id = $1")
        .bind(ids[0].parse::<uuid::Uuid>().unwrap())
        .execute(setup.pool())
        .await
        .unwrap();
    let seen = setup.call_tool(&clerk, "wait_for_results", wait.clone()).await;
    assert_eq!(seen["results"][0]["result"], "It is done.");
    // The lead and operators may wait for it too; other agents may not.
    let boss = setup.caller("boss").await;
    assert_eq!(setup.call_tool(&boss, "wait_for_results", wait.clone()).await["not_ended"], 1);
    assert_eq!(
        setup.call_tool(&setup.operator(), "wait_for_results", wait.clone()).await["not_ended"],
        1
    );
    assert!(
        setup
            .fail_tool(&helper, "wait_for_results", wait.clone())
            .await
            .contains("you have no tool")
    );
    let other = Caller::Turn(setup.turn("clerk", "2").await);
    assert!(setup.fail_tool(&other, "wait_for_results", wait).await.contains("no task"));
    let listed = setup.call_tool(&helper, "tasks_list", json!({})).await;
    assert_eq!(
        listed["tasks"].as_array().unwrap().len(),
        1,
        "the list has tasks of others: {listed}"
    );
    let listed =
        setup.call_tool(&boss, "tasks_list", json!({ "agent": "helper", "state": "done" })).await;
    assert_eq!(listed["tasks"][0]["agent"], "helper_2");
}

#[tokio::test]
async fn a_long_text_is_read_in_parts_without_loss() {
    const EACH_BYTES: usize = 200_000;
    let setup = Setup::new().await;
    let boss = setup.caller("boss").await;
    let tasks: Vec<_> =
        (0..5).map(|n| json!({ "agent": format!("helper/n{n}"), "text": "Write." })).collect();
    let told = setup.call_tool(&boss, "dispatch", json!({ "tasks": tasks })).await;
    let id = |task: &serde_json::Value| task["task_id"].as_str().unwrap().parse().unwrap();
    let handed: Vec<uuid::Uuid> = told["tasks"].as_array().unwrap().iter().map(id).collect();
    let ended = "update dalsegno.tasks set state = 'done', result = repeat('x', $1), started_at = now(), ended_at = now() where id = any($2)";
    let n_bytes = i32::try_from(EACH_BYTES).unwrap();
    sqlx::query(ended).bind(n_bytes).bind(&handed).execute(setup.pool()).await.unwrap();
    for _ in 0..5 {
        let post = json!({ "text": "y".repeat(EACH_BYTES) });
        setup.call_tool(&boss, "board_post", post).await;
    }
    for (tool, arguments, letter, list) in [
        ("wait_for_results", json!({ "task_ids": handed }), 'x', "results"),
        ("board_history", json!({}), 'y', "posts"),
    ] {
        let (mut arguments, mut read, mut lists) = (arguments, String::new(), Vec::new());
        loop {
            let answer = setup.call(&boss, tool, arguments.clone()).await;
            assert!(!answer.is_error, "{tool}: {}", answer.text);
            let Some((page, rest)) = answer.text.split_once("\n\n[There is more") else {
                read.push_str(&answer.text);
                lists.push(std::mem::take(&mut read));
                break;
            };
            read.push_str(page);
            let cursor = rest.split('"').nth(3).unwrap();
            if cursor.starts_with("0/") {
                lists.push(std::mem::take(&mut read));
            }
            arguments["cursor"] = json!(cursor);
        }
        let counts = lists.iter().map(|text| {
            let parsed: serde_json::Value = serde_json::from_str(text).unwrap();
            assert!(text.len() < 3 * EACH_BYTES, "{tool}: {} bytes in one answer", text.len());
            parsed[list].as_array().unwrap().len()
        });
        assert_eq!(counts.sum::<usize>(), 5, "{tool}");
        let n_letters: usize = lists.iter().map(|text| text.matches(letter).count()).sum();
        assert!(n_letters >= 5 * EACH_BYTES, "{tool}: {n_letters}");
    }
}

#[tokio::test]
async fn later_pages_do_not_wait_again_and_belong_to_the_same_answer() {
    let setup = Setup::new().await;
    let boss = setup.caller("boss").await;
    let one = json!({ "tasks": [{ "agent": "helper", "text": "One." }] });
    let told = setup.call_tool(&boss, "dispatch", one).await;
    let id = told["tasks"][0]["task_id"].clone();
    let page = async |cursor: Option<&str>, seconds: u64| {
        let mut arguments = json!({ "task_ids": [id], "seconds": seconds });
        arguments.as_object_mut().unwrap().extend(cursor.map(|c| ("cursor".to_owned(), json!(c))));
        tools::call_for(&setup.tools, &boss, "wait_for_results", arguments, 100).await
    };
    let first = page(None, 0).await.text;
    let cursor = first.split("\n\n[").nth(1).unwrap().split('"').nth(3).unwrap();
    // No worker takes the task. Each call that waited would do so for 20 seconds.
    let read_on = async {
        for _ in 0..12 {
            assert!(!page(Some(cursor), 20).await.is_error);
        }
    };
    tokio::time::timeout(crate::app::SOON, read_on).await.expect("no call waits");
    let failed = "update dalsegno.tasks set state = 'failed', error = 'lost', started_at = now(), ended_at = now() where id = $1::uuid";
    sqlx::query(failed).bind(id.as_str().unwrap()).execute(setup.pool()).await.unwrap();
    let changed = page(Some(cursor), 20).await;
    assert!(changed.is_error && changed.text.contains("has changed"), "{}", changed.text);
}

#[tokio::test]
async fn dispatch_with_then_adds_a_continuation_that_gets_the_results() {
    let setup = Setup::new().await;
    let turn = setup.turn("boss", "main").await;
    let handed =
        json!({ "tasks": [{ "agent": "helper", "text": "One." }], "then": "Put them together." });
    let told = setup.call_tool(&Caller::Turn(turn.clone()), "dispatch", handed).await;
    assert!(told["next"].as_str().unwrap().contains("End your turn now"));
    let all = setup.tasks().await;
    let next = all.iter().find(|task| task.prompt == "Put them together.").unwrap();
    assert_eq!((next.agent.as_str(), next.state), ("boss", State::Queued));
    let after: Vec<String> = sqlx::query_scalar(
        "select t.prompt from dalsegno.task_dependencies as d join dalsegno.tasks as t on t.id = d.on_task_id where d.task_id = $1",
    )
    .bind(next.id)
    .fetch_all(setup.pool())
    .await
    .unwrap();
    assert_eq!(after, ["One."]);
}

#[tokio::test]
async fn chains_of_dispatched_tasks_are_limited() {
    let setup = Setup::new().await;
    let most = setup.fixture.config().mentions.max_depth;
    let hand =
        |n: u16| json!({ "tasks": [{ "agent": format!("clerk/n{n}"), "text": "Hand it on." }] });
    let mut turn = setup.turn("clerk", "main").await;
    for number in 0..most {
        let told = setup.call_tool(&Caller::Turn(turn), "dispatch", hand(number)).await;
        let id = told["tasks"][0]["task_id"].as_str().unwrap().parse().unwrap();
        turn = setup.attempt(&setup.world.task(id).await).await;
    }
    let words = setup.fail_tool(&Caller::Turn(turn), "dispatch", hand(most)).await;
    assert!(words.contains("nothing was handed out") && words.contains("max_depth"), "{words}");
}

#[tokio::test]
async fn tasks_that_descend_from_one_task_are_limited() {
    let setup = Setup::with(&[("mentions.max_tasks", "5")]).await;
    let boss = setup.caller("boss").await;
    let hand = |n: usize| {
        let tasks: Vec<_> =
            (0..n).map(|n| json!({ "agent": format!("clerk/n{n}"), "text": "Count." })).collect();
        json!({ "tasks": tasks })
    };
    let told = setup.call_tool(&boss, "dispatch", hand(3)).await;
    let words = setup.fail_tool(&boss, "dispatch", hand(4)).await;
    assert!(words.contains("led to 3 others") && words.contains("mentions.max_tasks"), "{words}");
    let with_then = json!({ "tasks": hand(2)["tasks"], "then": "Put together." });
    assert!(setup.fail_tool(&boss, "dispatch", with_then).await.contains("mentions.max_tasks"));
    // The tasks it has added count for agents that add further ones, and for theirs.
    let id = told["tasks"][0]["task_id"].as_str().unwrap().parse().unwrap();
    let clerk = Caller::Turn(setup.attempt(&setup.world.task(id).await).await);
    assert!(setup.fail_tool(&clerk, "dispatch", hand(3)).await.contains("mentions.max_tasks"));
    setup
        .call_tool(
            &clerk,
            "dispatch",
            json!({ "tasks": [{ "agent": "helper/9", "text": "One." }] }),
        )
        .await;
    let pair = json!({ "template": "pair", "inputs": { "topic": "tides" } });
    let words = setup.fail_tool(&boss, "flows_start", pair.clone()).await;
    assert!(words.contains("led to 4 others"), "{words}");
    // The count of one task does not limit another task or an operator.
    let other = Caller::Turn(setup.turn("foreman", "main").await);
    setup.call_tool(&other, "flows_start", pair.clone()).await;
    setup.call_tool(&setup.operator(), "flows_start", pair).await;
}

#[tokio::test]
async fn a_full_queue_refuses_dispatched_tasks() {
    let setup = Setup::with(&[("queue.max_waiting", "4")]).await;
    let operator = setup.operator();
    let hand = json!({ "tasks": [{ "agent": "helper", "text": "One." }, { "agent": "clerk", "text": "Two." }] });
    let pair = json!({ "template": "pair", "inputs": { "topic": "tides" } });
    setup.call_tool(&operator, "dispatch", hand.clone()).await;
    setup.call_tool(&operator, "flows_start", pair.clone()).await;
    let boss = setup.caller("boss").await;
    let before = setup.state().await;
    for caller in [&boss, &operator] {
        for (name, arguments) in [("dispatch", &hand), ("flows_start", &pair)] {
            let words = setup.fail_tool(caller, name, arguments.clone()).await;
            assert!(
                words.contains("tasks are waiting") && words.contains("queue.max_waiting"),
                "{words}"
            );
        }
    }
    assert_eq!(setup.state().await, before);
}

#[tokio::test]
async fn a_search_finds_only_messages_of_the_callers_own_conversation() {
    let setup = Setup::new().await;
    let own = setup.turn("helper", "main").await;
    setup.turn("boss", "main").await;
    let found = setup
        .call_tool(&Caller::Turn(own.clone()), "search_transcript", json!({ "words": "DO IT" }))
        .await;
    let lines = found["found"].as_array().unwrap();
    assert_eq!(lines.len(), 1, "{found}");
    assert_eq!(
        (lines[0]["by"].as_str(), lines[0]["text"].as_str()),
        (Some("user"), Some("Do it."))
    );
    let stored =
        dalsegno::domain::messages::list(setup.pool(), own.session_id, Span::all()).await.unwrap();
    assert_eq!(stored.len(), 1);
    let none =
        setup.call_tool(&Caller::Turn(own), "search_transcript", json!({ "words": "%" })).await;
    assert_eq!(none["found"], json!([]), "the text is not treated as a pattern");
}

#[tokio::test]
async fn the_blackboard_shows_what_the_agent_file_grants() {
    let setup = Setup::new().await;
    let boss = setup.caller("boss").await;
    let secret = json!({ "patch": { "secret": 1 } });
    setup.call_tool(&setup.operator(), "blackboard_write", secret.clone()).await;
    assert_eq!(
        setup.call_tool(&boss, "blackboard_read", json!({})).await["document"],
        json!({ "secret": 1 })
    );
    let words =
        setup.fail_tool(&boss, "blackboard_write", json!({ "patch": { "secret": 2 } })).await;
    assert!(words.contains("its file grants /plan"), "{words}");
    let helper = setup.caller("helper").await;
    for (name, arguments) in [("blackboard_read", json!({})), ("blackboard_write", secret)] {
        assert!(setup.fail_tool(&helper, name, arguments).await.contains("you have no tool"));
    }
}

#[tokio::test]
async fn a_status_lists_what_each_agent_does() {
    let setup = Setup::new().await;
    let boss = setup.caller("boss").await;
    let told = setup.call_tool(&boss, "status", json!({})).await;
    assert_eq!(told["you"]["agent"], "boss");
    let agents = told["agents"].as_array().unwrap();
    let own = agents.iter().find(|agent| agent["agent"] == "boss").unwrap();
    assert_eq!(own["state"], "working");
    assert_eq!(agents.len(), 5);
    let listed = setup.call_tool(&boss, "flow_templates_list", json!({})).await;
    assert_eq!(listed["flow_templates"][0]["inputs"][0]["name"], "topic");
    assert!(listed["cannot_be_started"].is_null(), "{listed}");
    setup.fixture.write_template("bad", "no front matter");
    let listed = setup.call_tool(&boss, "flow_templates_list", json!({})).await;
    assert_eq!(listed["flow_templates"][0]["template"], "pair");
    assert_eq!(listed["cannot_be_started"], json!(["bad"]));
    let start = json!({ "template": "bad", "inputs": {} });
    let refused = setup.fail_tool(&boss, "flows_start", start).await;
    assert!(refused.contains("`bad` cannot be started"), "{refused}");
}
