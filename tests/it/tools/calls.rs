//! The effect of each tool, and the actor that the audit log names.

use dalsegno::{
    domain::{blackboard, messages::Span, tasks::State},
    tools::{self, Caller},
};
use serde_json::json;

use super::{Stage, changes};

#[tokio::test]
async fn what_a_tool_changes_has_the_author_that_called() {
    let stage = Stage::new().await;
    let turn = stage.turn("boss", "main").await;
    let boss = Caller::Turn(turn.clone());
    for (name, arguments) in changes() {
        stage.says(&boss, name, arguments).await;
    }
    let posts = stage.posts().await;
    assert_eq!((posts[0].sender.as_str(), posts[0].text.as_str()), ("boss", "Ahoy."));
    assert_eq!((posts[0].task_id, posts[0].turn), (Some(turn.task_id), Some(turn.turn)));
    assert_eq!(posts[0].audience, ["operator"]);
    let written = blackboard::get(stage.pool(), turn.campaign_id).await.unwrap();
    assert_eq!(written.document, json!({ "plan": { "parts": 10 } }));
    let history = blackboard::history(stage.pool(), turn.campaign_id, None, 10).await.unwrap();
    assert_eq!((history[0].actor.as_str(), history[0].task_id), ("boss/main", Some(turn.task_id)));
    let parents: Vec<(String, Option<uuid::Uuid>, Option<String>)> = sqlx::query_as(
        "select prompt, parent_id, added_by from dalsegno.tasks where id <> $1 order by prompt",
    )
    .bind(turn.task_id)
    .fetch_all(stage.pool())
    .await
    .unwrap();
    let boss_s = || Some("boss".to_owned());
    assert_eq!(parents[0], ("Part one.".to_owned(), Some(turn.task_id), boss_s()));
    assert_eq!(parents[1], ("Polish it.".to_owned(), Some(turn.task_id), boss_s()));
    let items: Vec<String> = sqlx::query_scalar(
        "select concat_ws(' ', kind, name, owner, author, task_id, revoked_by) from dalsegno.memory_items order by kind",
    )
    .fetch_all(stage.pool())
    .await
    .unwrap();
    let by = format!("boss {}", turn.task_id);
    let expected = [
        format!("edict tone  {by} boss"),
        format!("journal note boss {by}"),
        format!("record tides  {by}"),
    ];
    assert_eq!(items, expected);
    let lines = changes().map(|(name, _)| format!("tool.call {name} agent boss"));
    assert_eq!(stage.audit().await, lines);
}

#[tokio::test]
async fn an_operator_posts_as_the_operator_and_asks_whom_a_post_mentions() {
    let stage = Stage::new().await;
    let operator = stage.operator();
    let told = stage.says(&operator, "board_post", json!({ "text": "@helper look" })).await;
    assert_eq!(told["asked_tasks"].as_array().unwrap().len(), 1);
    for (name, arguments) in changes().into_iter().filter(|(name, _)| *name != "journals_write") {
        stage.says(&operator, name, arguments).await;
    }
    let senders: Vec<String> = stage.posts().await.into_iter().map(|post| post.sender).collect();
    assert_eq!(senders, ["operator", "operator"]);
    let all = stage.audit().await;
    assert!(all.iter().all(|line| line.ends_with("cli ann@host")), "{all:?}");
    // All changes except that of a journal, and the post before them.
    assert_eq!(all.len(), changes().len());
}

#[tokio::test]
async fn a_board_is_read_as_its_reader_sees_it() {
    let stage = Stage::new().await;
    let (boss, helper) = (stage.caller("boss").await, stage.caller("helper").await);
    let to = |names: &[&str]| json!({ "text": format!("for {names:?}"), "to": names });
    for names in [&["helper"][..], &["clerk"], &["all"], &["helper/2"]] {
        stage.says(&boss, "board_post", to(names)).await;
    }
    let seen = async |caller: &Caller| {
        let read = stage.says(caller, "board_history", json!({ "limit": 10 })).await;
        let posts = read["posts"].as_array().unwrap().clone();
        posts.iter().map(|post| post["seq"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(seen(&boss).await, [4, 3, 2, 1]);
    assert_eq!(seen(&stage.operator()).await, [4, 3, 2, 1]);
    assert_eq!(seen(&helper).await, [3, 1]);
    let second = Caller::Turn(stage.turn("helper", "2").await);
    assert_eq!(seen(&second).await, [4, 3]);
}

#[tokio::test]
async fn a_long_answer_comes_in_pages_that_lose_nothing() {
    let stage = Stage::new().await;
    let boss = stage.caller("boss").await;
    for number in 0..30 {
        let text = format!("{number} {}", "\"é\n".repeat(1_500));
        stage.says(&boss, "board_post", json!({ "text": text })).await;
    }
    let (mut cursor, mut read, mut n_pages) = (None::<String>, String::new(), 0);
    loop {
        let mut arguments = json!({ "limit": 7 });
        arguments.as_object_mut().unwrap().extend(cursor.map(|c| ("cursor".to_owned(), json!(c))));
        let answer = stage.call(&boss, "board_history", arguments).await;
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
async fn a_change_whose_answer_is_cut_is_not_asked_for_again() {
    const PAGE_CHARS: usize = 60;
    let stage = Stage::new().await;
    let boss = stage.caller("boss").await;
    let mut n_cut = 0;
    for (name, mut arguments) in changes() {
        if name == "dispatch" {
            let task = json!({ "agent": "helper", "text": "Part." });
            arguments = json!({ "tasks": [task, task, task] });
        }
        let answer =
            tools::call_for(&stage.tools, &boss, name, arguments.clone(), PAGE_CHARS).await;
        assert!(!answer.is_error && !answer.text.contains("cursor"), "{name}: {}", answer.text);
        if answer.text.chars().count() > PAGE_CHARS {
            assert!(answer.text.ends_with("do not call again for it.]"), "{}", answer.text);
            n_cut += 1;
        }
        arguments["cursor"] = json!("60");
        let words = stage.refuses(&boss, name, arguments).await;
        assert!(words.contains("cursor"), "{name}: {words}");
    }
    assert!(n_cut >= 3, "{n_cut}");
    let handed = stage.tasks().await.into_iter().filter(|task| task.prompt == "Part.");
    assert_eq!(handed.count(), 3);
}

#[tokio::test]
async fn all_that_recall_finds_can_be_read() {
    let stage = Stage::new().await;
    let boss = stage.caller("boss").await;
    for number in 0..12 {
        let item = json!({ "name": format!("tides-{number}"), "title": "Tides", "text": "High water is at six." });
        stage.says(&boss, "records_publish", item).await;
    }
    let asked = json!({ "words": "water", "limit": 30 });
    let whole = stage.call(&boss, "recall", asked.clone()).await.text;
    let (mut read, mut arguments) = (String::new(), asked);
    loop {
        let answer = tools::call_for(&stage.tools, &boss, "recall", arguments.clone(), 1_000).await;
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
async fn work_is_handed_out_and_its_results_are_seen_by_who_handed_it_out() {
    let stage = Stage::new().await;
    let (clerk, helper) = (stage.caller("clerk").await, stage.caller("helper").await);
    let handed =
        json!([{ "agent": "helper_2", "text": "One." }, { "agent": "helper/3", "text": "Two." }]);
    let told = stage.says(&clerk, "dispatch", json!({ "tasks": handed })).await;
    let ids: Vec<&str> =
        told["tasks"].as_array().unwrap().iter().map(|t| t["task_id"].as_str().unwrap()).collect();
    assert_eq!(told["tasks"][0]["agent"], "helper_2");
    let wait = json!({ "task_ids": ids, "seconds": 0 });
    let seen = stage.says(&clerk, "wait_for_results", wait.clone()).await;
    assert_eq!(
        (seen["not_ended"].as_i64(), seen["results"][0]["state"].as_str()),
        (Some(2), Some("queued"))
    );
    sqlx::query("update dalsegno.tasks set state = 'done', result = 'It is done.', started_at = now(), ended_at = now() where id = $1")
        .bind(ids[0].parse::<uuid::Uuid>().unwrap())
        .execute(stage.pool())
        .await
        .unwrap();
    let seen = stage.says(&clerk, "wait_for_results", wait.clone()).await;
    assert_eq!(seen["results"][0]["result"], "It is done.");
    // The lead and operators may wait for it too; other agents may not.
    let boss = stage.caller("boss").await;
    assert_eq!(stage.says(&boss, "wait_for_results", wait.clone()).await["not_ended"], 1);
    assert_eq!(
        stage.says(&stage.operator(), "wait_for_results", wait.clone()).await["not_ended"],
        1
    );
    assert!(
        stage.refuses(&helper, "wait_for_results", wait.clone()).await.contains("you have no tool")
    );
    let other = Caller::Turn(stage.turn("clerk", "2").await);
    assert!(stage.refuses(&other, "wait_for_results", wait).await.contains("no task"));
    let listed = stage.says(&helper, "tasks_list", json!({})).await;
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "its own alone: {listed}");
    let listed =
        stage.says(&boss, "tasks_list", json!({ "agent": "helper", "state": "done" })).await;
    assert_eq!(listed["tasks"][0]["agent"], "helper_2");
}

#[tokio::test]
async fn what_is_long_is_read_a_part_at_a_time_and_nothing_of_it_is_lost() {
    const EACH_BYTES: usize = 200_000;
    let stage = Stage::new().await;
    let boss = stage.caller("boss").await;
    let tasks: Vec<_> =
        (0..5).map(|n| json!({ "agent": format!("helper/n{n}"), "text": "Write." })).collect();
    let told = stage.says(&boss, "dispatch", json!({ "tasks": tasks })).await;
    let id = |task: &serde_json::Value| task["task_id"].as_str().unwrap().parse().unwrap();
    let handed: Vec<uuid::Uuid> = told["tasks"].as_array().unwrap().iter().map(id).collect();
    let ended = "update dalsegno.tasks set state = 'done', result = repeat('x', $1), started_at = now(), ended_at = now() where id = any($2)";
    let n_bytes = i32::try_from(EACH_BYTES).unwrap();
    sqlx::query(ended).bind(n_bytes).bind(&handed).execute(stage.pool()).await.unwrap();
    for _ in 0..5 {
        let post = json!({ "text": "y".repeat(EACH_BYTES) });
        stage.says(&boss, "board_post", post).await;
    }
    for (tool, arguments, letter, list) in [
        ("wait_for_results", json!({ "task_ids": handed }), 'x', "results"),
        ("board_history", json!({}), 'y', "posts"),
    ] {
        let (mut arguments, mut read, mut lists) = (arguments, String::new(), Vec::new());
        loop {
            let answer = stage.call(&boss, tool, arguments.clone()).await;
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
            assert!(text.len() < 3 * EACH_BYTES, "{tool}: {} bytes at once", text.len());
            parsed[list].as_array().unwrap().len()
        });
        assert_eq!(counts.sum::<usize>(), 5, "{tool}");
        let n_letters: usize = lists.iter().map(|text| text.matches(letter).count()).sum();
        assert!(n_letters >= 5 * EACH_BYTES, "{tool}: {n_letters}");
    }
}

#[tokio::test]
async fn who_reads_on_does_not_wait_again_and_no_page_is_of_another_answer() {
    let stage = Stage::new().await;
    let boss = stage.caller("boss").await;
    let one = json!({ "tasks": [{ "agent": "helper", "text": "One." }] });
    let told = stage.says(&boss, "dispatch", one).await;
    let id = told["tasks"][0]["task_id"].clone();
    let page = async |cursor: Option<&str>, seconds: u64| {
        let mut arguments = json!({ "task_ids": [id], "seconds": seconds });
        arguments.as_object_mut().unwrap().extend(cursor.map(|c| ("cursor".to_owned(), json!(c))));
        tools::call_for(&stage.tools, &boss, "wait_for_results", arguments, 100).await
    };
    let first = page(None, 0).await.text;
    let cursor = first.split("\n\n[").nth(1).unwrap().split('"').nth(3).unwrap();
    // No worker takes the task. Each call that waited would do so for 20 seconds.
    let read_on = async {
        for _ in 0..12 {
            assert!(!page(Some(cursor), 20).await.is_error);
        }
    };
    tokio::time::timeout(crate::app::SOON, read_on).await.expect("none waits");
    let failed = "update dalsegno.tasks set state = 'failed', error = 'lost', started_at = now(), ended_at = now() where id = $1::uuid";
    sqlx::query(failed).bind(id.as_str().unwrap()).execute(stage.pool()).await.unwrap();
    let changed = page(Some(cursor), 20).await;
    assert!(changed.is_error && changed.text.contains("has changed"), "{}", changed.text);
}

#[tokio::test]
async fn who_hands_out_with_a_then_is_asked_again_with_the_results() {
    let stage = Stage::new().await;
    let turn = stage.turn("boss", "main").await;
    let handed =
        json!({ "tasks": [{ "agent": "helper", "text": "One." }], "then": "Put them together." });
    let told = stage.says(&Caller::Turn(turn.clone()), "dispatch", handed).await;
    assert!(told["next"].as_str().unwrap().contains("End your turn now"));
    let all = stage.tasks().await;
    let next = all.iter().find(|task| task.prompt == "Put them together.").unwrap();
    assert_eq!((next.agent.as_str(), next.state), ("boss", State::Queued));
    let after: Vec<String> = sqlx::query_scalar(
        "select t.prompt from dalsegno.task_dependencies as d join dalsegno.tasks as t on t.id = d.on_task_id where d.task_id = $1",
    )
    .bind(next.id)
    .fetch_all(stage.pool())
    .await
    .unwrap();
    assert_eq!(after, ["One."]);
}

#[tokio::test]
async fn agents_cannot_hand_each_other_work_for_ever() {
    let stage = Stage::new().await;
    let most = stage.ground.config().mentions.max_depth;
    let hand =
        |n: u16| json!({ "tasks": [{ "agent": format!("clerk/n{n}"), "text": "Hand it on." }] });
    let mut turn = stage.turn("clerk", "main").await;
    for number in 0..most {
        let told = stage.says(&Caller::Turn(turn), "dispatch", hand(number)).await;
        let id = told["tasks"][0]["task_id"].as_str().unwrap().parse().unwrap();
        turn = stage.attempt(&stage.world.task(id).await).await;
    }
    let words = stage.refuses(&Caller::Turn(turn), "dispatch", hand(most)).await;
    assert!(words.contains("nothing was handed out") && words.contains("max_depth"), "{words}");
}

#[tokio::test]
async fn one_task_leads_to_no_more_than_so_many_others() {
    let stage = Stage::with(&[("mentions.max_tasks", "5")]).await;
    let boss = stage.caller("boss").await;
    let hand = |n: usize| {
        let tasks: Vec<_> =
            (0..n).map(|n| json!({ "agent": format!("clerk/n{n}"), "text": "Count." })).collect();
        json!({ "tasks": tasks })
    };
    let told = stage.says(&boss, "dispatch", hand(3)).await;
    let words = stage.refuses(&boss, "dispatch", hand(4)).await;
    assert!(words.contains("led to 3 others") && words.contains("mentions.max_tasks"), "{words}");
    let with_then = json!({ "tasks": hand(2)["tasks"], "then": "Put together." });
    assert!(stage.refuses(&boss, "dispatch", with_then).await.contains("mentions.max_tasks"));
    // The tasks it has added count for agents that add further ones, and for theirs.
    let id = told["tasks"][0]["task_id"].as_str().unwrap().parse().unwrap();
    let clerk = Caller::Turn(stage.attempt(&stage.world.task(id).await).await);
    assert!(stage.refuses(&clerk, "dispatch", hand(3)).await.contains("mentions.max_tasks"));
    stage
        .says(&clerk, "dispatch", json!({ "tasks": [{ "agent": "helper/9", "text": "One." }] }))
        .await;
    let pair = json!({ "workflow": "pair", "inputs": { "topic": "tides" } });
    let words = stage.refuses(&boss, "workflows_start", pair.clone()).await;
    assert!(words.contains("led to 4 others"), "{words}");
    // The count of one task does not limit another task or an operator.
    let other = Caller::Turn(stage.turn("foreman", "main").await);
    stage.says(&other, "workflows_start", pair.clone()).await;
    stage.says(&stage.operator(), "workflows_start", pair).await;
}

#[tokio::test]
async fn what_does_not_fit_into_the_queue_is_not_handed_out() {
    let stage = Stage::with(&[("queue.max_waiting", "4")]).await;
    let operator = stage.operator();
    let hand = json!({ "tasks": [{ "agent": "helper", "text": "One." }, { "agent": "clerk", "text": "Two." }] });
    let pair = json!({ "workflow": "pair", "inputs": { "topic": "tides" } });
    stage.says(&operator, "dispatch", hand.clone()).await;
    stage.says(&operator, "workflows_start", pair.clone()).await;
    let boss = stage.caller("boss").await;
    let before = stage.state().await;
    for caller in [&boss, &operator] {
        for (name, arguments) in [("dispatch", &hand), ("workflows_start", &pair)] {
            let words = stage.refuses(caller, name, arguments.clone()).await;
            assert!(
                words.contains("tasks are waiting") && words.contains("queue.max_waiting"),
                "{words}"
            );
        }
    }
    assert_eq!(stage.state().await, before);
}

#[tokio::test]
async fn a_search_finds_what_was_said_in_ones_own_conversation_and_nowhere_else() {
    let stage = Stage::new().await;
    let own = stage.turn("helper", "main").await;
    stage.turn("boss", "main").await;
    let found = stage
        .says(&Caller::Turn(own.clone()), "search_transcript", json!({ "words": "DO IT" }))
        .await;
    let lines = found["found"].as_array().unwrap();
    assert_eq!(lines.len(), 1, "{found}");
    assert_eq!(
        (lines[0]["by"].as_str(), lines[0]["text"].as_str()),
        (Some("user"), Some("Do it."))
    );
    let stored =
        dalsegno::domain::messages::list(stage.pool(), own.session_id, Span::all()).await.unwrap();
    assert_eq!(stored.len(), 1);
    let none = stage.says(&Caller::Turn(own), "search_transcript", json!({ "words": "%" })).await;
    assert_eq!(none["found"], json!([]), "a pattern is no pattern");
}

#[tokio::test]
async fn the_blackboard_is_what_the_file_grants() {
    let stage = Stage::new().await;
    let boss = stage.caller("boss").await;
    let secret = json!({ "patch": { "secret": 1 } });
    stage.says(&stage.operator(), "blackboard_write", secret.clone()).await;
    assert_eq!(
        stage.says(&boss, "blackboard_read", json!({})).await["document"],
        json!({ "secret": 1 })
    );
    let words = stage.refuses(&boss, "blackboard_write", json!({ "patch": { "secret": 2 } })).await;
    assert!(words.contains("it grants /plan"), "{words}");
    let helper = stage.caller("helper").await;
    for (name, arguments) in [("blackboard_read", json!({})), ("blackboard_write", secret)] {
        assert!(stage.refuses(&helper, name, arguments).await.contains("you have no tool"));
    }
}

#[tokio::test]
async fn a_status_tells_who_does_what() {
    let stage = Stage::new().await;
    let boss = stage.caller("boss").await;
    let told = stage.says(&boss, "status", json!({})).await;
    assert_eq!(told["you"]["agent"], "boss");
    let agents = told["agents"].as_array().unwrap();
    let own = agents.iter().find(|agent| agent["agent"] == "boss").unwrap();
    assert_eq!(own["state"], "working");
    assert_eq!(agents.len(), 5);
    let listed = stage.says(&boss, "workflows_list", json!({})).await;
    assert_eq!(listed["workflows"][0]["inputs"][0]["name"], "topic");
    assert!(listed["cannot_be_started"].is_null(), "{listed}");
    stage.ground.write_template("bad", "no front matter");
    let listed = stage.says(&boss, "workflows_list", json!({})).await;
    assert_eq!(listed["workflows"][0]["workflow"], "pair");
    assert_eq!(listed["cannot_be_started"], json!(["bad"]));
    let start = json!({ "workflow": "bad", "inputs": {} });
    let refused = stage.refuses(&boss, "workflows_start", start).await;
    assert!(refused.contains("`bad` cannot be started"), "{refused}");
}
