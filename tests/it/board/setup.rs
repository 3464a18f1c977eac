//! Agents around a board, with a fake Ollama that records the requests of each.

use std::collections::BTreeSet;

use dalsegno::{
    context::xml::unescape,
    domain::{
        agents::SessionMode as Mode,
        posts::{self, New, Post, Sender, SourceTurn},
        tasks::{self, Task},
    },
    transcript::Role,
};
use serde_json::Value;
use uuid::Uuid;

use super::{at, by_operator, to};
use crate::{providers::fake_ollama::FakeOllama, turns::fixture::Fixture};

pub struct BoardSetup {
    pub fixture: Fixture,
    pub fake: FakeOllama,
}

/// A post as a model has received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPost {
    pub id: String,
    pub sender: String,
    pub text: String,
}

/// Splits a reader into agent and instance.
pub fn parts(reader: &str) -> (&str, &str) {
    reader.split_once('/').unwrap_or((reader, "main"))
}

impl BoardSetup {
    pub async fn new(agents: &[&str], fields: &str) -> Self {
        Self::with_window(agents, fields, 32_768).await
    }

    pub async fn with_window(agents: &[&str], fields: &str, window_tokens: u64) -> Self {
        Self::with_settings(agents, fields, window_tokens, &[]).await
    }

    pub async fn with_settings(
        agents: &[&str],
        fields: &str,
        window_tokens: u64,
        more: &[(&str, &str)],
    ) -> Self {
        let fake = FakeOllama::start().await;
        fake.state.shown.lock().unwrap()["model_info"]["qwen3.context_length"] =
            window_tokens.into();
        let (url, window) = (format!("http://{}", fake.addr), window_tokens.to_string());
        let settings = [
            ("ollama.base_url", url.as_str()),
            ("ollama.num_ctx", window.as_str()),
            ("sessions.rotate_at_tokens", "0"),
            ("ollama.breaker_open_secs", "1"),
            ("ollama.breaker_failures", "1000"),
        ];
        let settings = [&settings[..], more].concat();
        let board_setup = Self { fixture: Fixture::new(&settings).await, fake };
        for agent in agents {
            board_setup.write(agent, fields, "");
        }
        board_setup
    }

    pub fn write(&self, agent: &str, fields: &str, words: &str) {
        self.fixture.write_agent(
            agent,
            &format!(
                "---\nname: {agent}\ndescription: One of them\nprovider: ollama\nmodel: qwen3:8b\n{fields}---\nYou are one.{words}\n"
            ),
        );
    }

    pub fn campaign(&self) -> Uuid {
        self.fixture.campaign.id
    }

    pub async fn post(&self, names: &[&str], text: &str) -> Post {
        let audience = to(names);
        let new = by_operator(self.campaign(), &audience, text);
        posts::add(&self.fixture.pool, &new, at()).await.unwrap()
    }

    /// Mentions a reader. Returns the post and the task that it creates, with the same text.
    pub async fn mention(&self, reader: &str, text: &str) -> (Post, Task) {
        let fixture = &self.fixture;
        let (agent, instance) = parts(reader);
        let config = fixture.config();
        let catalogue = dalsegno::domain::agents::Library::open(&config.agents).unwrap().current();
        let audience = to(&[reader]);
        let mut tx = fixture.pool.begin().await.unwrap();
        let new = by_operator(self.campaign(), &audience, text);
        let post = posts::add(&mut *tx, &new, at()).await.unwrap();
        let new = tasks::New {
            instance,
            ..tasks::New::for_agent(self.campaign(), catalogue.agent(agent).unwrap(), text)
        };
        let task = tasks::add(&mut tx, &config.tasks, &new, at()).await.unwrap().task;
        let of_post = "update dalsegno.tasks set post_id = $2 where id = $1";
        sqlx::query(of_post).bind(task.id).bind(post.id).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        (post, task)
    }

    pub async fn ask(&self, reader: &str, text: &str, mode: Option<Mode>) -> Task {
        let (agent, instance) = parts(reader);
        self.fixture.add_as(agent, instance, text, mode, Default::default()).await
    }

    /// Posts the answer of a task as its agent.
    pub async fn reply(&self, task: &Task, names: &[&str], reply_to: Option<Uuid>) -> Option<Post> {
        let task = self.fixture.task(task).await;
        let (session_id, turn) = (task.session_id?, task.turn?);
        let messages = self.fixture.messages(session_id).await;
        let answer = messages
            .iter()
            .rfind(|it| it.turn == turn && it.message.role == Role::Assistant && !it.partial)?;
        let said = SourceTurn { task_id: task.id, session_id, turn, message_id: Some(answer.id) };
        let sender = Sender::Agent { agent: &task.agent, instance: &task.instance, said };
        let (audience, text) = (to(names), task.result.as_deref()?);
        let new = New { sender, reply_to, ..by_operator(self.campaign(), &audience, text) };
        Some(posts::add(&self.fixture.pool, &new, at()).await.unwrap())
    }

    /// Returns each request whose last task has these words.
    pub fn requests_with(&self, prompt: &str) -> Vec<Value> {
        let asks = |chat: &Value| {
            sent(chat).rfind("<task ").is_some_and(|at| sent(chat)[at..].contains(prompt))
        };
        self.fake.chats().into_iter().filter(asks).collect()
    }
}

/// Returns the text of the user's messages in a request.
pub fn sent(chat: &Value) -> String {
    let messages = chat["messages"].as_array().unwrap().iter();
    let users = messages.filter(|message| message["role"] == "user");
    users.map(|message| message["content"].as_str().unwrap()).collect::<Vec<_>>().join("\n\n")
}

/// Parses the posts of a request, in order. Texts of others contain no `<`, so each element is a real post.
pub fn read(sent: &str) -> Vec<ShownPost> {
    let post = |rest: &str| {
        let (open, rest) = rest.split_once('>').unwrap();
        let (text, _) = rest.split_once("</post>").unwrap();
        let attribute = |name: &str| {
            let (_, value) = open.split_once(&format!("{name}=\"")).unwrap();
            unescape(value.split_once('"').unwrap().0).into_owned()
        };
        ShownPost {
            id: attribute("id"),
            sender: attribute("sender"),
            text: unescape(text).into_owned(),
        }
    };
    sent.split("<post ").skip(1).map(post).collect()
}

pub fn texts(read: &[ShownPost]) -> Vec<&str> {
    read.iter().map(|post| post.text.as_str()).collect()
}

pub fn is_free_of_repetition(read: &[ShownPost]) -> bool {
    read.iter().map(|post| &post.id).collect::<BTreeSet<_>>().len() == read.len()
}
