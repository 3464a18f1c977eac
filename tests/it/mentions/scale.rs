//! Twenty agents that call each other, while workers die at random.

use std::collections::{BTreeMap, HashMap};

use dalsegno::domain::{
    Page,
    posts::Origin,
    tasks::{State, TaskFilter},
};
use futures_util::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use rustix::process::Signal;

use super::*;
use crate::{app::eventually, turns::fixture::WorkerProcess};

const N_AGENTS: usize = 20;
/// Agents that may call others; they are the first of all.
const N_CALLERS: usize = 12;
const MAX_DEPTH: usize = 3;
/// Posts by people, and by agents in answer to them.
const N_POSTS: i64 = if cfg!(feature = "chaos") { 2_000 } else { 600 };
const N_POSTERS: usize = 4;
const N_KILLS: usize = 3;
fn name(n: usize) -> String {
    format!("a{n:02}")
}

/// Posts until the board has `N_POSTS` posts, most of them without a task, and cancels some of its tasks.
async fn post_messages(fixture: &Fixture, poster: usize, seed: u64) -> Vec<PostResult> {
    let mut random = StdRng::seed_from_u64(seed.wrapping_add(poster as u64));
    let (mut posted, mut n_asked) = (Vec::new(), 0);
    while fixture.count("select count(*) from dalsegno.posts").await < N_POSTS {
        for _ in 0..6 {
            let reader = [name(random.random_range(0..N_AGENTS))];
            let note = format!("Note {} of {poster}.", posted.len());
            posted.push(post_to(fixture, &note, Some(&reader)).await.unwrap());
        }
        // Each agent in turn, and some more.
        let mut names = vec![format!("@{}", name((poster + N_POSTERS * n_asked) % N_AGENTS))];
        n_asked += 1;
        let n_beside = random.random_range(0..=2);
        names.extend((0..n_beside).map(|_| format!("@{}", name(random.random_range(0..N_AGENTS)))));
        let one =
            post(fixture, &format!("{} question {} of {poster}", names.join(" "), posted.len()))
                .await;
        if random.random_ratio(1, 20) {
            give_back(fixture, one.tasks[0].task_id).await;
        }
        posted.push(one);
        // The test is about the talk of agents, so the queue is kept short.
        eventually("the agents keep up", async || {
            let open = "select count(*) from dalsegno.tasks where ended_at is null";
            (fixture.count(open).await < 100).then_some(())
        })
        .await;
    }
    posted
}

async fn give_back(fixture: &Fixture, task_id: Uuid) {
    let mut tx = fixture.pool.begin().await.unwrap();
    match tasks::cancel(&mut tx, task_id, "not wanted", fixture.clock.now()).await {
        Ok(_) | Err(tasks::Error::Ended { .. }) => tx.commit().await.unwrap(),
        Err(error) => panic!("{error:?}"),
    }
}

async fn kill_at_random(fixture: &Fixture, random: &mut StdRng) -> Vec<WorkerProcess> {
    let mut workers = vec![fixture.process(&[]), fixture.process(&[])];
    for kill in 1..=N_KILLS {
        let share = i64::try_from(kill).unwrap() * N_POSTS / i64::try_from(N_KILLS + 1).unwrap();
        eventually("the expected number of posts exists", async || {
            (fixture.count("select count(*) from dalsegno.posts").await >= share).then_some(())
        })
        .await;
        let mut victim = workers.swap_remove(random.random_range(0..workers.len()));
        victim.signal(Signal::KILL);
        victim.ended().await;
        workers.push(fixture.process(&[]));
    }
    workers
}

#[tokio::test]
async fn twenty_agents_answer_many_posts_while_workers_are_killed() {
    let max_depth = MAX_DEPTH.to_string();
    // Each agent that may call others calls these two, and so they call each other.
    let say = r#"["say @a00 and @a01: your turn."]"#;
    let settings = [
        ("mentions.max_depth", max_depth.as_str()),
        ("mentions.max_repeats", "10000"),
        ("sim.faults", say),
        ("worker.turns_slots", "12"),
    ];
    let fixture = Fixture::new(&settings).await;
    for n in 0..N_AGENTS {
        let keys = if n < N_CALLERS { "mentions: true\n" } else { "" };
        fixture.write_agent(&name(n), &agent(&name(n), keys));
    }
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (workers, posted) = tokio::join!(
        kill_at_random(&fixture, &mut random),
        join_all((0..N_POSTERS).map(|poster| post_messages(&fixture, poster + 1, seed)))
    );
    let open = "select count(*) from dalsegno.tasks where ended_at is null";
    eventually("no task is left", async || (fixture.count(open).await == 0).then_some(())).await;
    fixture.settled().await;
    drop(workers);

    let board = board(&fixture).await;
    let page = Page { after: None, limit: 10_000 };
    let mut conn = fixture.pool.acquire().await.unwrap();
    let tasks = tasks::list(&mut conn, &TaskFilter::default(), page).await.unwrap();
    println!("{} posts, {} tasks", board.len(), tasks.len());
    check_answers(&board, &tasks, &posted.concat());
    check_order(&board);
    check_loops(&board);
}

/// Checks that each task has one answer, and that each promised task exists.
fn check_answers(board: &[Post], tasks: &[Task], posted: &[PostResult]) {
    let mut answers: HashMap<Uuid, Vec<&Post>> = HashMap::new();
    let by_id: HashMap<Uuid, &Post> = board.iter().map(|post| (post.id, post)).collect();
    for post in board {
        // A notice about an answer also belongs to its task, and answers that answer.
        let is_notice =
            post.origin == Origin::System && by_id[&post.reply_to.unwrap()].task_id == post.task_id;
        if let Some(task_id) = post.task_id.filter(|_| !is_notice) {
            answers.entry(task_id).or_default().push(post);
        }
    }
    for task in tasks {
        let [answer] = answers.remove(&task.id).unwrap_or_default()[..] else {
            panic!("the task does not have one answer: {task:?}")
        };
        let by_whom = if task.state == State::Done { task.agent.as_str() } else { "system" };
        assert_eq!(answer.sender, by_whom, "{task:?}");
        let asked = by_id[&answer.reply_to.unwrap()];
        assert_eq!(answer.audience[0], asked.sender);
        assert_eq!(task.prompt, asked.text);
    }
    assert!(answers.is_empty(), "answers without a post: {answers:?}");
    let known: HashMap<Uuid, &Task> = tasks.iter().map(|task| (task.id, task)).collect();
    for called in posted.iter().flat_map(|posted| &posted.tasks) {
        assert_eq!(known[&called.task_id].agent, called.agent);
    }
    let by_operator = board.iter().filter(|post| post.origin == Origin::Operator).count();
    assert_eq!(by_operator, posted.len());
}

/// Checks that each agent has answered in order, and that the board has no gap.
fn check_order(board: &[Post]) {
    let seqs: Vec<i64> = board.iter().map(|post| post.seq).collect();
    assert_eq!(seqs, (1..=i64::try_from(board.len()).unwrap()).collect::<Vec<_>>());
    let seq_of: HashMap<Uuid, i64> = board.iter().map(|post| (post.id, post.seq)).collect();
    let mut asked: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for post in board.iter().filter(|post| post.origin == Origin::Agent) {
        asked.entry(&post.sender).or_default().push(seq_of[&post.reply_to.unwrap()]);
    }
    assert_eq!(asked.len(), N_AGENTS);
    for (agent, asked) in asked {
        assert!(asked.is_sorted_by(|a, b| a < b), "{agent} got tasks in {asked:?}");
    }
}

fn check_loops(board: &[Post]) {
    let by_id: HashMap<Uuid, &Post> = board.iter().map(|post| (post.id, post)).collect();
    let mut longest = 0;
    for post in board.iter().filter(|post| post.origin == Origin::Agent) {
        let (mut depth, mut at) = (0, post);
        while at.origin == Origin::Agent {
            (depth, at) = (depth + 1, by_id[&at.reply_to.unwrap()]);
        }
        longest = longest.max(depth);
    }
    assert_eq!(longest, MAX_DEPTH + 1, "the last of them mentions no agent");
    let cut = board.iter().filter(|post| post.text.contains("mentions.max_depth")).count();
    assert!(cut > 0, "no agent got a report");
}
