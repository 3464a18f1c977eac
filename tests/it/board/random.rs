//! Random boards, failing turns and lost sessions: each reader gets each visible post once, and no others.

use std::collections::BTreeMap;

use dalsegno::domain::{
    agents::SessionMode as Mode,
    posts::{ListDirection, Post, Viewer, list_page},
    tasks::{State, Task},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::Value;

use super::setup::{BoardSetup, ShownPost, is_free_of_repetition, parts, read, sent};
use crate::providers::fake_ollama::Play;

/// Names that are parts of each other. The last but one is another instance, the last one is the lead.
const READERS: [&str; 5] = ["an", "ann", "anna", "ann/an", "all-ann"];
const LEAD: &str = "all-ann";
const AGENTS: [&str; 3] = ["an", "ann", "anna"];
/// Windows of one case each: the whole board, or so little that most posts are left out.
const WINDOWS: [usize; 6] = [1000, 1, 1000, 2, 3, 7];

/// Number of rounds; all tasks of a round end with it.
const ROUNDS: usize = 5;

struct Case {
    board_setup: BoardSetup,
    window: usize,
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
    left_out: usize,
}

impl Case {
    async fn new(seed: u64, window: usize) -> Self {
        let fields = format!("history_window: {window}\n");
        let board_setup = BoardSetup::new(&AGENTS, &fields).await;
        board_setup.write(LEAD, &format!("lead: true\n{fields}"), "");
        let random = StdRng::seed_from_u64(seed);
        Self { board_setup, window, random, tasks: Vec::new(), n_posts: 0, n_words: 0 }
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
            self.board_setup.reply(&task, &names, None).await;
        } else if which < 60 {
            let reader = self.reader();
            let words = format!("[{reader}] Mention {}.", self.n_posts);
            let (_, task) = self.board_setup.mention(reader, &words).await;
            self.tasks.push((task, reader));
        } else {
            let words = format!("Post {} to {names:?}.", self.n_posts);
            self.board_setup.post(&names, &words).await;
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
        let task = self.board_setup.ask(reader, &words, mode).await;
        self.tasks.push((task, reader));
    }

    /// Sets up the faults of the coming round.
    async fn set_faults(&mut self) {
        for _ in 0..self.random.random_range(0..4) {
            let play = match self.random.random_range(0..4) {
                // Fails for good; rebuilds the session; is retried.
                0 => Play::Status(404, "", r#"{"error":"not found"}"#),
                1 => Play::Status(400, "", r#"{"error":"bad template"}"#),
                2 => Play::Status(503, "retry-after: 1\r\n", r#"{"error":"server busy"}"#),
                _ => Play::Says(&["Fine."]),
            };
            self.board_setup.fake.state.plays.lock().unwrap().push_back(play);
        }
        if self.chance(40) {
            let agent = *AGENTS.choose(&mut self.random).unwrap();
            let fields = format!("history_window: {}\n", self.window);
            self.board_setup.write(agent, &fields, &format!(" Rule {}.", self.n_words));
        }
        if self.chance(30) {
            let sql = "update dalsegno.sessions set rebuild_because = 'reset' where agent_type = $1 and closed_at is null";
            let (agent, _) = parts(self.reader());
            sqlx::query(sql).bind(agent).execute(&self.board_setup.fixture.pool).await.unwrap();
        }
    }

    async fn round(&mut self) {
        for _ in 0..self.random.random_range(1..=5) {
            self.say_something().await;
        }
        self.set_faults().await;
        let worker = self.board_setup.fixture.start_worker().await;
        for _ in 0..self.random.random_range(1..=4) {
            self.ask_something().await;
            // Runs beside the turns.
            self.say_something().await;
        }
        if self.chance(30) {
            let (task, _) = self.tasks.last().unwrap().clone();
            if self.board_setup.fixture.task(&task).await.ended_at.is_none()
                && self.is_no_mention(&task).await
            {
                self.board_setup.fixture.cancel(&task).await;
            }
        }
        for (task, _) in &self.tasks {
            self.board_setup.fixture.ended_after_waits(task).await;
        }
        self.board_setup.fixture.settled().await;
        worker.stop().await;
    }

    /// Returns true if the task is not linked to a post. Cancelling a task removes its post.
    async fn is_no_mention(&self, task: &Task) -> bool {
        let sql = "select post_id is null from dalsegno.tasks where id = $1";
        sqlx::query_scalar(sql)
            .bind(task.id)
            .fetch_one(&self.board_setup.fixture.pool)
            .await
            .unwrap()
    }

    /// Runs one more task for each reader, without faults.
    async fn last_tasks(&mut self) -> Vec<(Task, &'static str)> {
        self.board_setup.fake.state.plays.lock().unwrap().clear();
        let worker = self.board_setup.fixture.start_worker().await;
        let mut last = Vec::new();
        for reader in READERS {
            let task = self.board_setup.ask(reader, &format!("[{reader}] The end."), None).await;
            last.push((self.board_setup.fixture.done(&task).await, reader));
        }
        self.board_setup.fixture.settled().await;
        worker.stop().await;
        last
    }

    async fn posts(&self) -> Vec<Post> {
        let (pool, id) = (&self.board_setup.fixture.pool, self.board_setup.campaign());
        list_page(pool, id, Viewer::All, ListDirection::After(0), 10_000).await.unwrap()
    }

    /// Returns true if the session of this task holds the post in another form: as an answer, or as a task.
    async fn holds_post(&self, post: &Post, task: &Task) -> bool {
        let sql = "select exists (select from dalsegno.messages as m join dalsegno.posts as p on p.message_id = m.id
                                   where m.session_id = $1 and p.id = $2)
                       or exists (select from dalsegno.messages as m join dalsegno.tasks as t on t.id = m.id
                                   where m.session_id = $1 and t.post_id = $2 and t.agent = $3 and t.instance = $4)";
        let query = sqlx::query_scalar(sql).bind(task.session_id).bind(post.id);
        let query = query.bind(&task.agent).bind(&task.instance);
        query.fetch_one(&self.board_setup.fixture.pool).await.unwrap()
    }

    /// Returns true if the post was a task that failed. The turn beside it does not show the post, because it is a
    /// task, and a successor does not take over rejected prompts.
    async fn has_failed(&self, post: &Post, task: &Task) -> bool {
        let sql = "select exists (select from dalsegno.tasks
                                   where state = 'failed' and post_id = $1 and agent = $2 and instance = $3)";
        let query = sqlx::query_scalar(sql).bind(post.id).bind(&task.agent).bind(&task.instance);
        query.fetch_one(&self.board_setup.fixture.pool).await.unwrap()
    }
}

fn may_see(post: &Post, reader: &str) -> bool {
    let is_addressed = |name: &String| name == "all" || name == reader;
    reader == LEAD || post.sender == reader || post.audience.iter().any(is_addressed)
}

/// Returns the reader that a request is for, from its last task.
fn reader_of(sent: &str) -> &str {
    let (_, task) = sent.rsplit_once("<task ").unwrap();
    task.split_once('[').unwrap().1.split_once(']').unwrap().0
}

/// Returns how many posts each turn has shown, and how many it reports as left out.
fn blocks(sent: &str) -> Vec<(usize, usize)> {
    let block = |rest: &str| {
        let (open, rest) = rest.split_once('>').unwrap();
        let (inside, _) = rest.split_once("</posts>").unwrap();
        let left_out = open.split_once("left_out=\"").map(|(_, n)| n.split_once('"').unwrap().0);
        (inside.matches("<post ").count(), left_out.map_or(0, |n| n.parse().unwrap()))
    };
    sent.split("<posts ").skip(1).map(block).collect()
}

fn check_request(chat: &Value, posts: &BTreeMap<String, &Post>, window: usize) -> Vec<ShownPost> {
    let sent = sent(chat);
    for (n_shown, n_left_out) in blocks(&sent) {
        assert!(n_shown <= window, "{sent}");
        assert!(
            n_left_out == 0 || n_shown == window,
            "the window had space for more posts: {sent}"
        );
    }
    let (reader, read) = (reader_of(&sent), read(&sent));
    assert!(is_free_of_repetition(&read), "{reader}: {sent}");
    for post in &read {
        let known = posts[&post.id];
        assert!(may_see(known, reader), "{reader} got {known:?}");
        assert_eq!((&known.sender, &known.text), (&post.sender, &post.text));
    }
    read
}

async fn play(seed: u64, window: usize, counts: &mut Counts) {
    let mut case = Case::new(seed, window).await;
    for _ in 0..ROUNDS {
        case.round().await;
    }
    let last = case.last_tasks().await;
    let posts = case.posts().await;
    let by_id: BTreeMap<String, &Post> = posts.iter().map(|p| (p.id.to_string(), p)).collect();
    let chats = case.board_setup.fake.chats();
    let check = |chat: &Value| (sent(chat), check_request(chat, &by_id, window));
    let seen: Vec<(String, Vec<ShownPost>)> = chats.iter().map(check).collect();
    for ((task, reader), (sent, shown)) in last.iter().zip(&seen[seen.len() - last.len()..]) {
        let n_left_out: usize = blocks(sent).iter().map(|(_, n_left_out)| n_left_out).sum();
        let mut missing = Vec::new();
        for post in posts.iter().filter(|post| may_see(post, reader)) {
            let is_shown = shown.iter().any(|read| read.id == post.id.to_string());
            let is_held = case.holds_post(post, task).await;
            assert!(!(is_shown && is_held), "{reader} got the post twice: {post:?}");
            if !is_shown && !is_held && !case.has_failed(post, task).await {
                missing.push(post);
            }
            counts.shown += usize::from(is_shown);
            counts.held += usize::from(is_held);
        }
        let n_missing = missing.len();
        assert!(n_missing <= n_left_out, "{reader}: {missing:#?} of {n_left_out}: {sent}");
        counts.left_out += n_missing;
    }
    counts.posts += posts.len();
    counts.requests += chats.len();
    let sql = "select state from dalsegno.tasks";
    let states: Vec<String> =
        sqlx::query_scalar(sql).fetch_all(&case.board_setup.fixture.pool).await.unwrap();
    counts.failed += states.iter().filter(|state| *state != State::Done.as_str()).count();
}

#[tokio::test]
async fn random_operations_show_every_post_to_its_audience_exactly_once() {
    let seed = std::env::var("BOARD_SEED")
        .map_or_else(|_| u64::from(rand::random::<u32>()), |seed| seed.parse().unwrap());
    let mut counts = Counts::default();
    for (case, window) in WINDOWS.into_iter().enumerate() {
        println!("case {case}: seed {}, window {window}", seed + case as u64);
        play(seed + case as u64, window, &mut counts).await;
    }
    let Counts { posts, requests, failed, shown, held, left_out } = counts;
    println!(
        "{} boards with {posts} posts: {requests} requests looked through, {failed} tasks failed or were cancelled, \
         {shown} posts shown once, {held} held otherwise and {left_out} left out at the end",
        WINDOWS.len()
    );
    // With many seeds, each case showed at least nine tenths of its posts.
    let is_wild = failed > 0 && held > 0 && left_out > 0 && shown * 2 > posts;
    assert!(is_wild, "the random cases have too few faults");
}
