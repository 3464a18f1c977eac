//! Assembles the call of a conversation with five hundred messages and fifty posts before the task.

use std::time::Instant;

use dalsegno::{
    context::{
        Calibration, Entry, Parts, assemble,
        compaction::View,
        parts::{Attachments, Board, Campaign, Task},
        posts::{Post, Posts},
        xml::FenceSeed,
    },
    transcript::{Message, Role},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{at, common::size};

fn n_messages() -> usize {
    size::of(500, 20)
}

const N_POSTS: i64 = 50;
const N_SENTENCES: usize = 30;
fn n_runs() -> usize {
    size::of(101, 3)
}

const BAR_MS: f64 = 10.0;

/// Measures a worker that has not continued the conversation before, so no entry is rendered yet.
pub fn posts_behind_messages() -> anyhow::Result<Value> {
    let entries: Vec<Entry> = (0..n_messages()).map(entry).collect();
    let shown = Posts { left_out: 7, posts: (1..=N_POSTS).map(post).collect(), archived: None };
    let (calibration, seed) = (Calibration::cold(), FenceSeed::from_bytes([7; 32]));
    let mut millis = Vec::with_capacity(n_runs());
    let mut n_bytes = 0;
    for _ in 0..n_runs() {
        let entries = entries.clone();
        let began = Instant::now();
        let view = View::of(&entries, &[], 0)?;
        let assembled = assemble(&parts(view, &shown), &seed, &calibration);
        millis.push(began.elapsed().as_secs_f64() * 1e3);
        n_bytes = assembled.messages.iter().map(|message| message.text.len()).sum::<usize>();
    }
    Ok(json!({
        "scenario": "assemble", "messages": n_messages(), "posts": N_POSTS, "text_bytes": n_bytes,
        "p50_ms": at(&mut millis, 0.5), "p99_ms": at(&mut millis, 0.99), "max_ms": at(&mut millis, 1.0), "bar_ms": BAR_MS,
    }))
}

fn parts<'a>(view: View<'a>, shown: &'a Posts<'a>) -> Parts<'a> {
    Parts {
        agent_prompt: "You write articles about harbours.",
        skills: &[],
        campaign: Campaign {
            version: 1,
            name: "Harbours",
            brief: "Ten articles about the harbours of the north.",
            client_context: None,
        },
        edicts: &[],
        facts: None,
        roster: &[],
        tools: &[],
        view,
        heard_to_seq: None,
        notice: None,
        board: Some(Board { entry_id: Uuid::from_u128(1), shown, not_shown: &[] }),
        statuses: &[],
        parameters: None,
        blackboard: None,
        results: None,
        result_schema: None,
        attachments: Attachments::NONE,
        task: Task {
            entry_id: Uuid::from_u128(u128::MAX),
            prompt: "Go on.",
            asked_by: None,
            is_correction: false,
        },
    }
}

fn entry(at: usize) -> Entry {
    let message =
        Message::new(if at.is_multiple_of(2) { Role::User } else { Role::Assistant }, text(at));
    Entry::new(Uuid::from_u128(1_000 + at as u128), at as i64 + 1, message)
}

fn post(seq: i64) -> Post<'static> {
    Post {
        id: Uuid::from_u128(seq.unsigned_abs().into()),
        seq,
        sender: "ann".into(),
        to: "all".into(),
        trust: None,
        posted_at: "2031-01-01T00:00:00Z".into(),
        reply_to: None,
        text: text(usize::try_from(seq).unwrap_or_default()).into(),
    }
}

fn text(at: usize) -> String {
    let sentence = |n: usize| format!("Part {at} describes ferry {n} & its <mole>. ");
    (0..N_SENTENCES).map(sentence).collect()
}
