//! Long histories in the pure code. `cargo bench --bench context` measures the time.

use dalsegno::{
    context::{
        Budget, Calibration, Entry, Parts, assemble,
        compaction::{Policy, View, plan},
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

fn make_plan(entries: &[Entry]) -> plan::Plan {
    let calibration = Calibration::cold();
    let scene = plan::CompactionInput {
        view: View::of(entries, &[], 0).unwrap(),
        budget: Budget::new(32_768, 8192, 500).unwrap(),
        calibration: &calibration,
        upcoming_tokens: 100,
        summariser_window_tokens: 32_768,
        policy: Policy::default(),
        node: None,
    };
    plan::plan(&scene).unwrap()
}

#[test]
fn a_plan_for_ten_thousand_messages_holds_one_piece_for_each() {
    let plan = make_plan(&long_history(10_000));
    let pieces: usize = plan.batches.iter().map(|batch| batch.pieces.len()).sum();
    // Memory: one piece per message, indices only.
    assert_eq!(pieces, plan.fold);
}

#[test]
fn a_window_of_fifty_posts_behind_five_hundred_messages_is_assembled() {
    let entries = long_history(500);
    let calibration = Calibration::cold();
    let post = |seq: i64| Post {
        id: Uuid::from_u128(seq as u128),
        seq,
        sender: "ann".into(),
        to: "all".into(),
        trust: None,
        posted_at: "2031-01-01T00:00:00Z".into(),
        reply_to: None,
        text: prose(seq as usize, 40).into(),
    };
    let shown = Posts { left_out: 7, posts: (1..=50).map(post).collect(), archived: None };
    let board = Board { entry_id: Uuid::from_u128(1), shown: &shown, not_shown: &[] };
    let view = View::of(&entries, &[], 0).unwrap();
    let parts = Parts { board: Some(board), ..parts(view, "go on") };
    assert!(assemble(&parts, &seed(), &calibration).messages.len() > 300);
}
