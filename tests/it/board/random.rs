//! Random boards, failing turns, lost sessions: nobody gets what is not theirs, and everybody gets everything once.

use std::collections::BTreeMap;

use dalsegno::domain::{
    posts::{Along, Post, Viewer, along},
    sessions::resolve::Mode,
    tasks::{State, Task},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::Value;

use super::table::{Read, Table, is_free_of_repetition, parts, read, sent};
use crate::providers::fake_ollama::Play;

/// Parts of each other; the last but one is another instance, the last one leads.
const READERS: [&str; 5] = ["an", "ann", "anna", "ann/an", "all-ann"];
const LEAD: &str = "all-ann";
const AGENTS: [&str; 3] = ["an", "ann", "anna"];
const ALL_OF_IT: &str = "history_window: 1000\n";

/// How much is played. Each round ends with all its tasks.
const CASES: usize = 6;
const ROUNDS: usize = 5;

struct Case {
    table: Table,
    random: StdRng,
    tasks: Vec<(Task, &'static str)>,
    n_posts: usize,
    n_words: usize,
}

#[derive(Default)]
struct Counts {
    posts: usize,
    requests: usize,
    failed: usize,
    shown: usize,
    held: usize,
}

impl Case {
    async fn new(seed: u64) -> Self {
        let table = Table::new(&AGENTS, ALL_OF_IT).await;
        table.write(LEAD, &format!("lead: true\n{ALL_OF_IT}"), "");
        let random = StdRng::seed_from_u64(seed);
        Self { table, random, tasks: Vec::new(), n_posts: 0, n_words: 0 }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn reader(&mut self) -> &'static str {
        READERS.choose(&mut self.random).unwrap()
    }

    async fn say_something(&mut self) {
        let n_names = self.random.random_range(1..=3);
        let mut names: Vec<&str> = (0..n_names).map(|_| self.reader()).collect();
        if self.chance(15) {
            names.push("all");
        }
        if self.chance(20) {
            names.push("operator");
        }
        let (which, tasks) = (self.random.random_range(0..100), self.tasks.len());
        self.n_posts += 1;
        if which < 35 && tasks > 0 {
            let (task, _) = self.tasks[self.random.random_range(0..tasks)].clone();
            self.table.reply(&task, &names, None).await;
        } else if which < 60 {
            let reader = self.reader();
            let words = format!("[{reader}] Mention {}.", self.n_posts);
            let (_, task) = self.table.mention(reader, &words).await;
            self.tasks.push((task, reader));
        } else {
            let words = format!("Post {} to {names:?}.", self.n_posts);
            self.table.post(&names, &words).await;
        }
    }

    async fn ask_something(&mut self) {
        let reader = self.reader();
        self.n_words += 1;
        let words = format!("[{reader}] Task {}.", self.n_words);
        let mode = match self.random.random_range(0..10) {
            0 => Some(Mode::Fresh),
            1 => Some(Mode::None),
            _ => None,
        };
        let task = self.table.ask(reader, &words, mode).await;
        self.tasks.push((task, reader));
    }

    /// What goes wrong in the coming round.
    async fn spoil(&mut self) {
        for _ in 0..self.random.random_range(0..4) {
            let play = match self.random.random_range(0..4) {
                // Fails for good; rebuilds the session; is tried again.
                0 => Play::Status(404, "", r#"{"error":"not found"}"#),
                1 => Play::Status(400, "", r#"{"error":"bad template"}"#),
                2 => Play::Status(503, "retry-after: 1\r\n", r#"{"error":"server busy"}"#),
                _ => Play::Says(&["Fine."]),
            };
            self.table.fake.state.plays.lock().unwrap().push_back(play);
        }
        if self.chance(40) {
            let agent = *AGENTS.choose(&mut self.random).unwrap();
            self.table.write(agent, ALL_OF_IT, &format!(" Rule {}.", self.n_words));
        }
        if self.chance(30) {
            let sql = "update dalsegno.sessions set rebuild_because = 'reset' where agent_type = $1 and closed_at is null";
            let (agent, _) = parts(self.reader());
            sqlx::query(sql).bind(agent).execute(&self.table.ground.pool).await.unwrap();
        }
    }

    async fn round(&mut self) {
        for _ in 0..self.random.random_range(1..=5) {
            self.say_something().await;
        }
        self.spoil().await;
        let worker = self.table.ground.work().await;
        for _ in 0..self.random.random_range(1..=4) {
            self.ask_something().await;
            // Beside turns that run.
            self.say_something().await;
        }
        if self.chance(30) {
            let (task, _) = self.tasks.last().unwrap().clone();
            if self.table.ground.task(&task).await.ended_at.is_none()
                && self.is_no_mention(&task).await
            {
                self.table.ground.cancel(&task).await;
            }
        }
        for (task, _) in &self.tasks {
            self.table.ground.ended(task).await;
        }
        self.table.ground.settled().await;
        worker.stop().await;
    }

    /// A post goes with its task if somebody cancels that: it is nobody's any more.
    async fn is_no_mention(&self, task: &Task) -> bool {
        let sql = "select post_id is null from dalsegno.tasks where id = $1";
        sqlx::query_scalar(sql).bind(task.id).fetch_one(&self.table.ground.pool).await.unwrap()
    }

    /// Everybody is asked once more, and nothing goes wrong.
    async fn last_tasks(&mut self) -> Vec<(Task, &'static str)> {
        self.table.fake.state.plays.lock().unwrap().clear();
        let worker = self.table.ground.work().await;
        let mut last = Vec::new();
        for reader in READERS {
            let task = self.table.ask(reader, &format!("[{reader}] The end."), None).await;
            last.push((self.table.ground.done(&task).await, reader));
        }
        self.table.ground.settled().await;
        worker.stop().await;
        last
    }

    async fn posts(&self) -> Vec<Post> {
        let (pool, id) = (&self.table.ground.pool, self.table.campaign());
        along(pool, id, Viewer::All, Along::After(0), 10_000).await.unwrap()
    }

    /// Whether the session of this task holds a post otherwise: as an answer, or as a task.
    async fn is_held(&self, post: &Post, task: &Task) -> bool {
        let sql = "select exists (select from dalsegno.messages as m join dalsegno.posts as p on p.message_id = m.id
                                   where m.session_id = $1 and p.id = $2)
                       or exists (select from dalsegno.messages as m join dalsegno.tasks as t on t.id = m.id
                                   where m.session_id = $1 and t.post_id = $2 and t.agent = $3 and t.instance = $4)";
        let query = sqlx::query_scalar(sql).bind(task.session_id).bind(post.id);
        let query = query.bind(&task.agent).bind(&task.instance);
        query.fetch_one(&self.table.ground.pool).await.unwrap()
    }
}

fn may_see(post: &Post, reader: &str) -> bool {
    let is_addressed = |name: &String| name == "all" || name == reader;
    reader == LEAD || post.sender == reader || post.audience.iter().any(is_addressed)
}

/// Whose request it is: the last task in it says so.
fn asked(sent: &str) -> &str {
    let (_, task) = sent.rsplit_once("<task ").unwrap();
    task.split_once('[').unwrap().1.split_once(']').unwrap().0
}

fn check_request(chat: &Value, posts: &BTreeMap<String, &Post>) -> Vec<Read> {
    let sent = sent(chat);
    let (reader, read) = (asked(&sent), read(&sent));
    assert!(is_free_of_repetition(&read), "{reader}: {sent}");
    for post in &read {
        let known = posts[&post.id];
        assert!(may_see(known, reader), "{reader} got {known:?}");
        assert_eq!((&known.sender, &known.text), (&post.sender, &post.text));
    }
    read
}

async fn play(seed: u64, counts: &mut Counts) {
    let mut case = Case::new(seed).await;
    for _ in 0..ROUNDS {
        case.round().await;
    }
    let last = case.last_tasks().await;
    let posts = case.posts().await;
    let by_id: BTreeMap<String, &Post> = posts.iter().map(|p| (p.id.to_string(), p)).collect();
    let chats = case.table.fake.chats();
    let seen: Vec<Vec<Read>> = chats.iter().map(|chat| check_request(chat, &by_id)).collect();
    for ((task, reader), shown) in last.iter().zip(&seen[seen.len() - last.len()..]) {
        for post in posts.iter().filter(|post| may_see(post, reader)) {
            let is_shown = shown.iter().any(|read| read.id == post.id.to_string());
            let is_held = case.is_held(post, task).await;
            assert!(is_shown != is_held, "{reader}, shown {is_shown}, held {is_held}: {post:?}");
            counts.shown += usize::from(is_shown);
            counts.held += usize::from(is_held);
        }
    }
    counts.posts += posts.len();
    counts.requests += chats.len();
    let sql = "select state from dalsegno.tasks";
    let states: Vec<String> =
        sqlx::query_scalar(sql).fetch_all(&case.table.ground.pool).await.unwrap();
    counts.failed += states.iter().filter(|state| *state != State::Done.as_str()).count();
}

#[tokio::test]
async fn whatever_happens_nobody_gets_what_is_not_theirs_and_every_session_gets_everything_once() {
    let seed = std::env::var("BOARD_SEED")
        .map_or_else(|_| u64::from(rand::random::<u32>()), |seed| seed.parse().unwrap());
    let mut counts = Counts::default();
    for case in 0..CASES {
        println!("case {case}: seed {}", seed + case as u64);
        play(seed + case as u64, &mut counts).await;
    }
    let Counts { posts, requests, failed, shown, held } = counts;
    println!(
        "{CASES} boards with {posts} posts: {requests} requests looked through, {failed} tasks failed or were cancelled, \
         {shown} posts shown once and {held} held otherwise at the end"
    );
    assert!(failed > 0 && held > 0 && shown > posts, "the cases are too tame");
}
