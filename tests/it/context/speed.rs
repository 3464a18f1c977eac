//! Figures of the pure parts. The bar holds for release builds; `cargo test --release context_speed -- --nocapture`
//! prints them.

use std::time::{Duration, Instant};

use dalsegno::{
    context::{
        Budget, Calibration, Entry, Parts, assemble,
        compaction::{Policy, View, pins, plan},
        parts::Board,
        posts::{Post, Posts},
    },
    transcript::Role,
};
use uuid::Uuid;

use super::support::{calling, entries, message, parts, prose, result, seed};

fn long_history(messages: usize) -> Vec<Entry> {
    let all = (0..messages).map(|index| match index % 4 {
        0 => message(Role::User, &prose(index, 40)),
        1 => calling("", &["call"]),
        2 => result("call", &prose(index, 40)),
        _ => message(Role::Assistant, &prose(index, 40)),
    });
    entries(all.collect())
}

fn median(mut run: impl FnMut()) -> Duration {
    // Without optimisation the figures mean nothing.
    let runs = if cfg!(debug_assertions) { 1 } else { 9 };
    let mut times: Vec<_> = (0..runs)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[runs / 2]
}

fn make_plan(entries: &[Entry]) -> plan::Plan {
    let calibration = Calibration::cold();
    let scene = plan::Scene {
        view: View::of(entries, &[], 0).unwrap(),
        budget: Budget::new(32_768, 8192, 500).unwrap(),
        calibration: &calibration,
        upcoming_tokens: 100,
        summariser_window_tokens: 32_768,
        policy: Policy::default(),
    };
    plan::plan(&scene).unwrap()
}

#[test]
fn a_plan_for_ten_thousand_messages_is_quick_and_linear() {
    let entries = long_history(10_000);
    let plan = make_plan(&entries);
    let whole = median(|| drop(make_plan(&entries)));
    let tenth = median(|| drop(make_plan(&entries[..1_000])));
    let pieces: usize = plan.batches.iter().map(|batch| batch.pieces.len()).sum();
    println!(
        "plan: 10,000 messages {whole:?}, 1,000 messages {tenth:?}, {} batches",
        plan.batches.len()
    );
    // Memory: one piece per message, indices only.
    assert_eq!(pieces, plan.fold);
    if !cfg!(debug_assertions) {
        assert!(whole <= Duration::from_millis(20), "{whole:?}");
    }
}

#[test]
fn a_window_of_fifty_posts_behind_five_hundred_messages_is_assembled_quickly() {
    let entries = long_history(500);
    let calibration = Calibration::cold();
    let post = |seq: i64| Post {
        id: Uuid::from_u128(seq as u128),
        seq,
        sender: "ann".into(),
        to: "all".into(),
        posted_at: "2031-01-01T00:00:00Z".into(),
        reply_to: None,
        text: prose(seq as usize, 40).into(),
    };
    let shown = Posts { left_out: 7, posts: (1..=50).map(post).collect() };
    let board = Board { entry_id: Uuid::from_u128(1), shown: &shown, not_shown: &[] };
    let took = median(|| {
        // Without what earlier calls have rendered.
        let entries = entries.clone();
        let view = View::of(&entries, &[], 0).unwrap();
        let parts = Parts { board: Some(board), ..parts(view, "go on") };
        assert!(assemble(&parts, &seed(), &calibration).messages.len() > 300);
    });
    println!("500 messages and 50 posts: assembled in {took:?}");
    if !cfg!(debug_assertions) {
        assert!(took <= Duration::from_millis(10), "{took:?}");
    }
}

#[test]
fn the_other_pure_steps_are_printed() {
    let entries = long_history(1_000);
    let bytes: usize = entries.iter().map(|entry| entry.message.text.len()).sum();
    let calibration = Calibration::cold();
    let assembled = median(|| {
        let view = View::of(&entries, &[], 0).unwrap();
        drop(assemble(&parts(view, "go on"), &seed(), &calibration));
    });
    let measured = median(|| {
        for entry in &entries {
            drop(Entry::new(entry.id, entry.seq, entry.message.as_ref().clone()));
        }
    });
    let pinned = median(|| drop(pins::collect(&[], &entries).select(4_000, &calibration)));
    println!(
        "{} messages, {bytes} bytes: assemble {assembled:?}, weigh and hash {measured:?}, pins {pinned:?}",
        entries.len()
    );
}
