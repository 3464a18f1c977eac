//! Random histories: providers never get an orphaned tool pair, and plans never split a group.

use std::{collections::HashSet, sync::Arc};

use dalsegno::{
    context::{
        Budget, Calibration, Entry, Weight, assemble,
        compaction::{FoldDraft, Policy, Step, View, groups, ladder::CompactionSteps, plan},
        manifest::{Kind, PartReason},
        parts::{AboutUser, Blackboard, Colleague, Edict, Fact, Parts, Skill, Status},
        replay::{Rows, replay},
    },
    transcript::{Message, Role, ToolSpec},
};
use proptest::prelude::*;
use uuid::Uuid;

use super::support::{calling, entries, message, parts, prose, result, seed};

#[derive(Debug, Clone)]
enum Event {
    User(usize),
    Assistant(usize),
    Empty,
    Notice,
    System,
    Calls(Vec<u8>),
    Result(u8),
    ResultWithoutId,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1..20_usize).prop_map(Event::User),
        3 => (1..20_usize).prop_map(Event::Assistant),
        1 => Just(Event::Empty),
        1 => Just(Event::Notice),
        1 => Just(Event::System),
        3 => prop::collection::vec(0..6_u8, 1..4).prop_map(Event::Calls),
        6 => (0..6_u8).prop_map(Event::Result),
        1 => Just(Event::ResultWithoutId),
    ]
}

fn history(events: &[Event]) -> Vec<Entry> {
    let id = |id: &u8| format!("call_{id}");
    let messages = events.iter().enumerate().map(|(salt, event)| match event {
        Event::User(sentences) => message(Role::User, &prose(salt, *sentences)),
        Event::Assistant(sentences) => message(Role::Assistant, &prose(salt, *sentences)),
        Event::Empty => message(Role::Assistant, " "),
        Event::Notice => message(Role::Notice, "interrupted"),
        Event::System => message(Role::System, "obey"),
        Event::Calls(ids) => {
            let ids: Vec<_> = ids.iter().map(id).collect();
            calling("", &ids.iter().map(String::as_str).collect::<Vec<_>>())
        }
        Event::Result(call) => result(&id(call), &prose(salt, 2)),
        Event::ResultWithoutId => Message { tool_call_id: None, ..result("", "lost") },
    });
    entries(messages.collect())
}

/// Checks the rules of a strict provider.
fn assert_sendable(messages: &[Arc<Message>]) {
    let mut index = 0;
    let mut last_role = None;
    while index < messages.len() {
        let message = &messages[index];
        assert!(matches!(message.role, Role::User | Role::Assistant), "{:?} alone", message.role);
        assert!(
            !(message.role == Role::User && last_role == Some(Role::User)),
            "two user messages"
        );
        let results = &messages[index + 1..];
        for (call, result) in message.tool_calls.iter().zip(results) {
            assert_eq!(result.role, Role::Tool);
            assert_eq!(result.tool_call_id.as_deref(), Some(call.id.as_str()));
        }
        assert!(results.len() >= message.tool_calls.len(), "a call has no result");
        index += 1 + message.tool_calls.len();
        last_role = Some(message.role);
    }
    assert_eq!(last_role, Some(Role::User));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn an_assembled_context_has_no_orphaned_tool_pair(
        events in prop::collection::vec(event(), 0..60),
        folded in 0..60_usize,
    ) {
        let entries = history(&events);
        // Any suffix, because lost rows can make a view begin anywhere.
        let tail = &entries[folded.min(entries.len())..];
        let view = View::of(tail, &[], 0).unwrap();
        let assembled = assemble(&parts(view, "go on"), &seed(), &Calibration::cold());
        assert_sendable(&assembled.messages);
        prop_assert!(assembled.manifest.parts.len() < 20);
    }

    #[test]
    fn a_manifest_yields_the_same_context_again(
        events in prop::collection::vec(event(), 0..60),
        folded in 0..60_usize,
        heard_to_seq in prop::option::of(0..60_i64),
    ) {
        let entries = history(&events);
        let tail = &entries[folded.min(entries.len())..];
        let view = View::of(tail, &[], 0).unwrap();
        let plain = parts(view, "go <on> & on");
        let skills = ["one", "two"].map(|name| Skill { name, text: "Be <brief> & \u{1}clear." });
        let edicts = [Some("No exclamation marks."), None].map(|text| Edict {
            id: Uuid::from_u128(1), name: "tone", author: "ann", trust: "operator", text,
        });
        let fact = Fact { id: Uuid::from_u128(2), attribute: "city", text: "Lübeck", source: "said", said: "2026" };
        let colleagues = [Colleague { name: "editor", description: "Edits\nall." }];
        let tools = [Arc::new(ToolSpec {
            name: "look_up".to_owned(),
            description: "Looks up.".to_owned(),
            input_schema: serde_json::json!({ "type": "object", "minimum": 0.1 }),
        })];
        let whole = Parts {
            skills: &skills,
            edicts: &edicts,
            facts: Some(AboutUser { user: "ann@example.org", facts: &[fact] }),
            roster: &colleagues,
            tools: &tools,
            heard_to_seq,
            notice: Some("The session was restored."),
            statuses: &[Status { agent: "editor", state: "working", tool: Some("recall") }],
            blackboard: Some(Blackboard { version: 3, json: "{\"a\":1}" }),
            ..plain
        };
        let assembled = assemble(&whole, &seed(), &Calibration::cold());
        let texts = assembled.texts.iter().map(|it| (it.sha256, it.text.to_string())).collect();
        let task = message(Role::User, "go <on> & on");
        let task = Entry::new(Uuid::from_u128(u128::MAX), 1_000, task);
        // Rows that were stored later, and the task itself.
        let later = Entry::new(Uuid::from_u128(999), 1_001, message(Role::Assistant, "done"));
        let own = [task.clone()];
        let rows: Vec<_> = entries.iter().cloned().chain([task, later]).collect();
        let rows =
            Rows { seed: &seed(), texts: &texts, compaction: None, entries: &rows, own: &own, of_turn: &[] };
        let stored = serde_json::to_value(&assembled.manifest).unwrap();
        let replayed = replay(&serde_json::from_value(stored).unwrap(), &rows).unwrap();
        prop_assert_eq!(replayed.system, assembled.system);
        prop_assert_eq!(replayed.messages, assembled.messages);
        prop_assert_eq!(replayed.unheard, assembled.unheard);
        prop_assert_eq!(replayed.tools, tools.to_vec());
    }

    #[test]
    fn a_repair_neither_loses_nor_doubles_an_entry(events in prop::collection::vec(event(), 0..60)) {
        let entries = history(&events);
        let repaired = groups::repair(&entries, &[]);
        let mut seen = HashSet::new();
        for placed in &repaired.placed {
            if let groups::GroupEntry::Entry(entry) = placed {
                prop_assert!(seen.insert(entry.seq));
            }
        }
        for (entry, why) in &repaired.left_out {
            prop_assert!(seen.insert(entry.seq));
            prop_assert!(matches!(why, PartReason::OrphanedResult | PartReason::SystemInHistory | PartReason::Empty));
            prop_assert!(entry.message.role != Role::User);
        }
        prop_assert_eq!(seen.len(), entries.len());
    }

    #[test]
    fn a_plan_keeps_whole_groups_within_half_of_the_window(
        events in prop::collection::vec(event(), 0..120),
        window in 2_000..20_000_u64,
    ) {
        let entries = history(&events);
        let calibration = Calibration::cold();
        let scene = plan::CompactionInput {
            view: View::of(&entries, &[], 0).unwrap(),
            budget: Budget::new(window, Budget::default_reserve(window), 200).unwrap(),
            calibration: &calibration,
            upcoming_tokens: 20,
            summariser_window_tokens: 8192,
            policy: Policy::default(),
            node: None,
        };
        let Ok(plan) = plan::plan(&scene) else { return Ok(()) };
        let (fold, tail) = entries.split_at(plan.fold);
        prop_assert!(!fold.is_empty());
        if plan.is_reference {
            prop_assert!(tail.is_empty() && plan.batches.is_empty());
            return Ok(());
        }
        let weight: Weight = tail.iter().map(|entry| entry.weight).sum();
        prop_assert!(calibration.tokens(weight) * 2 <= scene.budget.room_tokens());
        prop_assert!(tail.first().is_none_or(|it| matches!(it.message.role, Role::User | Role::Notice)));
        // No group has members on both sides.
        for group in groups::group(&entries, &[]).groups {
            prop_assert!(group.last() < plan.fold || group.head >= plan.fold);
        }
        // Each byte of the folded part is in exactly one piece, in order.
        let mut at = (0, 0);
        for piece in plan.batches.iter().flat_map(|batch| &batch.pieces) {
            prop_assert_eq!((piece.index, piece.bytes.start), at);
            at = (piece.index, piece.bytes.end);
            if piece.part == piece.parts {
                prop_assert_eq!(piece.bytes.end, fold[piece.index].message.text.len());
                at = (piece.index + 1, 0);
            }
        }
        prop_assert_eq!(at, (fold.len(), 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// With any texts, a faulty summariser stops no turn.
    #[test]
    fn the_extract_passes_the_gates_whenever_there_is_a_plan(
        texts in prop::collection::vec(
            prop_oneof![
                any::<String>(),
                "((PIN: )?[a-zA-Z]{1,9}[-_./:&;#@]{0,2}[0-9]{0,5}&(lt|amp|#x41);[ \n\"`“”#*]{1,3}){1,30}",
                "(## (Goal|Open|Done)\n|I'm sorry, |```\n|<think>|[a-z]{1,8} ){1,60}",
                (1..30_usize).prop_map(|salt| prose(salt, salt)),
            ],
            12..80,
        ),
        window in 3_000..20_000_u64,
    ) {
        let messages = texts.iter().enumerate().map(|(index, text)| {
            message(if index % 2 == 0 { Role::User } else { Role::Assistant }, text)
        });
        let entries = entries(messages.collect());
        let calibration = Calibration::cold();
        let scene = plan::CompactionInput {
            view: View::of(&entries, &[], 0).unwrap(),
            budget: Budget::new(window, Budget::default_reserve(window), 200).unwrap(),
            calibration: &calibration,
            upcoming_tokens: 20,
            summariser_window_tokens: 8192,
            policy: Policy::default(),
            node: None,
        };
        match FoldDraft::begin(scene, &seed(), 1, CompactionSteps::new(0, false)) {
            Ok((_, step)) => prop_assert!(matches!(step, Step::Done(_)), "{:?}", step),
            Err(
                plan::Error::Floor { .. }
                | plan::Error::NothingToGain { .. }
                | plan::Error::NothingToFold,
            ) => {}
        }
    }
}

#[test]
fn a_late_result_returns_to_its_call_and_a_lost_one_is_replaced() {
    let entries = entries(vec![
        message(Role::User, "look"),
        calling("", &["a", "b"]),
        result("b", "late but first"),
        message(Role::User, "meanwhile"),
        result("a", "later"),
        result("a", "twice"),
        calling("", &["c"]),
    ]);
    let view = View::of(&entries, &[], 0).unwrap();
    let assembled = assemble(&parts(view, "go on"), &seed(), &Calibration::cold());
    assert_sendable(&assembled.messages);
    assert!(assembled.messages[2].text.contains("later"));
    assert!(assembled.messages[3].text.contains("late but first"));
    assert_eq!(assembled.messages[6].text, groups::INTERRUPTED_RESULT);
    let reasons: Vec<_> = assembled.manifest.parts.iter().map(|part| part.why).collect();
    assert!(reasons.contains(&PartReason::OrphanedResult));
    assert!(reasons.contains(&PartReason::CompletesInterruptedCall));
}

#[test]
fn a_prompt_that_an_interrupted_attempt_stored_is_sent_once() {
    let entries = entries(vec![
        message(Role::User, "write part one"),
        message(Role::Assistant, "part one"),
        message(Role::User, "write part two"),
        message(Role::Notice, "The last attempt was interrupted."),
    ]);
    let mut parts = parts(View::of(&entries, &[], 0).unwrap(), "write part two");
    parts.task.entry_id = entries[2].id;
    let assembled = assemble(&parts, &seed(), &Calibration::cold());
    let whole: String = assembled.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(whole.matches("write part two").count(), 1);
    assert!(assembled.messages.last().unwrap().text.contains("interrupted"));
    assert!(
        assembled.manifest.parts.iter().any(|part| part.why == PartReason::IsTheTask && !part.sent)
    );
}

#[test]
fn a_blank_brief_is_recorded_as_left_out() {
    let entries = entries(vec![message(Role::User, "write part one")]);
    let sends_brief = |brief| {
        let mut parts = parts(View::of(&entries, &[], 0).unwrap(), "write part two");
        parts.campaign.brief = brief;
        let assembled = assemble(&parts, &seed(), &Calibration::cold());
        let mut parts = assembled.manifest.parts.iter();
        parts.find(|part| part.kind == Kind::CampaignBrief).unwrap().sent
    };
    assert_eq!(["Ten articles.", "", " \n"].map(sends_brief), [true, false, false]);
}

#[test]
fn a_resent_history_is_identical_to_the_byte() {
    let mut all = vec![message(Role::User, "a < b"), message(Role::Assistant, "yes")];
    let first = entries(all.clone());
    all.extend([message(Role::User, "next"), message(Role::Assistant, "done")]);
    let second = entries(all);
    let send = |entries: &[Entry]| {
        let view = View::of(entries, &[], 0).unwrap();
        assemble(&parts(view, "third"), &seed(), &Calibration::cold())
    };
    let (one, two) = (send(&first), send(&second));
    assert_eq!(one.system, two.system);
    assert_eq!(one.messages[..2], two.messages[..2]);
}

#[test]
fn a_manifest_does_not_grow_with_the_transcript() {
    let size = |turns: usize| {
        let messages = (0..turns).flat_map(|turn| {
            [message(Role::User, &prose(turn, 3)), message(Role::Assistant, &prose(turn, 9))]
        });
        let entries = entries(messages.collect());
        let view = View::of(&entries, &[], 0).unwrap();
        let assembled = assemble(&parts(view, "go on"), &seed(), &Calibration::cold());
        serde_json::to_string(&assembled.manifest).unwrap().len()
    };
    assert!(size(500) as f64 / size(10) as f64 <= 1.02);
}
