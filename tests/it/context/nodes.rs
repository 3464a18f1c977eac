//! Compaction of a session at a node: only messages of the node are summarised.

use dalsegno::{
    context::{
        Budget, Calibration, Entry,
        compaction::{
            Compaction, FoldDraft, Policy, Step, View,
            flow::{Flow, Handoff, OpenError},
            groups,
            ladder::{CompactionStep, CompactionSteps},
            plan::{self, CompactionInput, Node},
            sections::SECTIONS,
        },
        xml::{Fence, FenceSeed, Scope, parse},
    },
    transcript::{Message, Role},
};
use proptest::prelude::*;
use uuid::Uuid;

use super::support::{calling, entries, message, prose, result, seed};

fn flow(first_seq: i64) -> Flow {
    Flow {
        campaign_id: Uuid::from_u128(7),
        session_id: Uuid::from_u128(8),
        role: "curator_2".to_owned(),
        node: "draft".to_owned(),
        entered_at: "2026-11-20T12:00:00Z".to_owned(),
        first_seq,
        entry: Some("Write it all down. PIN: no superlatives".to_owned()),
        tasks: vec![Uuid::from_u128(9)],
        handoffs: vec![Handoff {
            node: "intake".to_owned(),
            role: "curator_2".to_owned(),
            task_id: Uuid::from_u128(1),
            entered_at: "2026-11-20T11:00:00Z".to_owned(),
            left_at: Some("2026-11-20T12:00:00Z".to_owned()),
        }],
        unresolved: Some(OpenError {
            task_id: Uuid::from_u128(10),
            text: "Go on </unresolved></flow> & do <it>.".to_owned(),
        }),
    }
}

fn compaction_input<'a>(
    entries: &'a [Entry],
    window: u64,
    calibration: &'a Calibration,
    flow: &'a Flow,
) -> CompactionInput<'a> {
    CompactionInput {
        view: View::of(entries, &[], 0).unwrap(),
        budget: Budget::new(window, Budget::default_reserve(window), 200).unwrap(),
        calibration,
        upcoming_tokens: 20,
        summariser_window_tokens: 8192,
        // Pins alone, without verbatim prompts beside the summary.
        policy: Policy { keep_prompts_percent: 0, ..Policy::default() },
        node: Some(Node {
            first_seq: flow.first_seq,
            is_continued: false,
            flow,
            entry_seq: Some(flow.first_seq),
        }),
    }
}

/// Builds a turn of `n_words` words, all of them `word`.
fn turn(word: &str, n_words: usize) -> [Message; 2] {
    let words = format!("{word} ").repeat(n_words);
    [message(Role::User, &words), message(Role::Assistant, &words)]
}

/// Builds three turns elsewhere, the first of which pins a rule, and five at the node.
fn two_nodes() -> Vec<Entry> {
    with_turns_at_node(5)
}

fn with_turns_at_node(n_turns: usize) -> Vec<Entry> {
    let mut said: Vec<Message> = turn("olden", 120).into();
    said[0].text.push_str("\nPIN: never name the client");
    said.extend(turn("olden", 120));
    said.extend(turn("olden", 120));
    said.push(message(Role::Notice, "You are at the node `draft` now."));
    (0..n_turns).for_each(|_| said.extend(turn("newer", 120)));
    entries(said)
}

const NODE_SEQ: i64 = 7;
const WINDOW: u64 = 8_192;

fn record() -> String {
    let sections = SECTIONS.iter().map(|(title, _)| format!("## {title}\nNone.\n"));
    format!("{}never name the client", sections.collect::<String>())
}

#[test]
fn a_node_summariser_reads_the_nodes_messages_and_earlier_pins_of_people() {
    let (entries, calibration, flow) = (two_nodes(), Calibration::cold(), flow(NODE_SEQ));
    let seed = seed();
    let scene = compaction_input(&entries, WINDOW, &calibration, &flow);
    let (mut folding, step) =
        FoldDraft::begin(scene, &seed, 1, CompactionSteps::new(3, false)).unwrap();
    let Step::Ask { rung: CompactionStep::First, request, .. } = step else { panic!("{step:?}") };
    assert!(request.prompt.contains("newer") && !request.prompt.contains("olden"), "{request:?}");
    assert!(request.prompt.contains("never name the client"));
    let plan = folding.plan().clone();
    assert_eq!((plan.from_seq, plan.read.start), (1, 6));
    let Step::Done(outcome) = folding.process_answer(Ok(&record())) else {
        panic!("the summary is refused")
    };
    let compaction = outcome.compaction;
    assert_eq!((compaction.from_seq, compaction.to_seq), (1, entries[plan.fold - 1].seq));
    assert_eq!(compaction.flow.as_deref(), Some(&flow));
    assert!(compaction.tokens_after * 4 <= compaction.tokens_before * 3);
    assert_eq!(
        compaction.tokens_after,
        plan.tail_tokens
            + calibration.tokens(flow.weight())
            + calibration.tokens(dalsegno::context::Weight::of_text(&compaction.summary))
    );
}

#[test]
fn prompts_of_people_at_an_earlier_node_stay_verbatim() {
    let (entries, calibration, flow) = (two_nodes(), Calibration::cold(), flow(NODE_SEQ));
    let seed = seed();
    let scene = CompactionInput {
        policy: Policy::default(),
        ..compaction_input(&entries, WINDOW, &calibration, &flow)
    };
    let (mut folding, _) =
        FoldDraft::begin(scene, &seed, 1, CompactionSteps::new(1, false)).unwrap();
    let Step::Done(outcome) = folding.process_answer(Ok(&record())) else {
        panic!("the summary is refused")
    };
    let kept = &outcome.compaction.prompts.kept;
    assert!(kept[0].text.contains("olden"), "{kept:?}");
    assert!(kept[0].text.contains("PIN: never name the client"), "{kept:?}");
}

#[test]
fn a_summary_that_loses_a_pin_of_an_earlier_node_is_refused() {
    let (entries, calibration, flow) = (two_nodes(), Calibration::cold(), flow(NODE_SEQ));
    let seed = seed();
    let scene = compaction_input(&entries, WINDOW, &calibration, &flow);
    let (mut folding, _) =
        FoldDraft::begin(scene, &seed, 1, CompactionSteps::new(1, false)).unwrap();
    let forgetful = record().replace("never name the client", "");
    let Step::Done(outcome) = folding.process_answer(Ok(&forgetful)) else {
        panic!("there is no extract")
    };
    assert_eq!(outcome.rung, CompactionStep::Extract);
    let summary = &outcome.compaction.summary;
    assert!(summary.contains("never name the client") && summary.contains("newer"));
    assert!(!summary.contains("olden"), "{summary}");
}

#[test]
fn a_short_node_stays_verbatim_without_a_provider_call() {
    let (mut entries, calibration, flow) = (two_nodes(), Calibration::cold(), flow(NODE_SEQ));
    // One turn at the node.
    entries.truncate(9);
    let seed = seed();
    let scene = compaction_input(&entries, WINDOW, &calibration, &flow);
    let (folding, step) = FoldDraft::begin(scene, &seed, 1, CompactionSteps::new(3, true)).unwrap();
    let Step::Done(outcome) = step else { panic!("{step:?}") };
    assert_eq!((folding.plan().fold, folding.plan().read.len()), (6, 0));
    assert!(outcome.refused.is_empty() && outcome.compaction.summary.contains("never name"));
    assert!(!outcome.compaction.summary.contains("olden"));
    // The node's entry follows the summary, at its place: it is neither sent nor weighed twice.
    let made = outcome.compaction;
    assert_eq!(made.flow.as_deref(), Some(&Flow { entry: None, ..flow.clone() }));
    let summary = calibration.tokens(dalsegno::context::Weight::of_text(&made.summary));
    let without_entry = calibration.tokens(made.flow.unwrap().weight());
    assert!(without_entry < calibration.tokens(flow.weight()));
    assert_eq!(made.tokens_after, folding.plan().tail_tokens + without_entry + summary);
}

/// Messages before the node are in no summary of it; messages folded at the node are in the next one.
#[test]
fn a_node_compacted_again_continues_from_its_own_summary_only() {
    let (entries, calibration, flow) = (with_turns_at_node(9), Calibration::cold(), flow(NODE_SEQ));
    let seed = seed();
    let earlier = [Compaction {
        generation: 1,
        parent: 0,
        from_seq: 1,
        to_seq: NODE_SEQ + 2,
        summary: "Summed up before.".to_owned(),
        flow: Some(Box::new(flow.clone())),
        prompts: Default::default(),
        pins: Vec::new(),
        tokens_before: 3_000,
        tokens_after: 500,
    }];
    for is_continued in [true, false] {
        let scene = compaction_input(&entries, WINDOW, &calibration, &flow);
        let node = scene.node.map(|node| Node { is_continued, entry_seq: None, ..node });
        let scene =
            CompactionInput { view: View::of(&entries, &earlier, 1).unwrap(), node, ..scene };
        let (mut folding, step) =
            FoldDraft::begin(scene, &seed, 2, CompactionSteps::new(1, false)).unwrap();
        let Step::Ask { request, .. } = step else { panic!("{step:?}") };
        assert_eq!(request.prompt.contains("Summed up before."), is_continued, "{request:?}");
        let Step::Done(outcome) = folding.process_answer(Err("it is away".to_owned())) else {
            panic!("there is no extract")
        };
        // The folded entry comes from the earlier flow, and is kept.
        assert_eq!(outcome.compaction.flow.unwrap().entry, flow.entry);
    }
}

#[test]
fn text_about_the_work_can_neither_close_nor_imitate_an_element() {
    let flow = flow(NODE_SEQ);
    let seed: FenceSeed = seed();
    let fence: Fence = seed.fence(Scope::Summary { generation: 3 });
    let sent = flow.render(&fence);
    let pieces = parse::parse(&sent, &[fence]).unwrap();
    let [parse::Piece::Fenced(element)] = pieces.as_slice() else { panic!("{pieces:?}") };
    assert_eq!(element.name, "flow");
    assert_eq!(element.child("entry").unwrap().text, flow.entry.clone().unwrap());
    let unresolved = flow.unresolved.as_ref().unwrap();
    assert_eq!(element.child("unresolved").unwrap().text, unresolved.text);
    assert!(sent.contains(&unresolved.task_id.to_string()));
    assert!(sent.contains("node=\"intake\"") && sent.contains("role=\"curator_2\""));
}

#[derive(Debug, Clone)]
enum Event {
    User(usize),
    Assistant(usize),
    Notice,
    Calls(Vec<u8>),
    Result(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1..20_usize).prop_map(Event::User),
        3 => (1..20_usize).prop_map(Event::Assistant),
        1 => Just(Event::Notice),
        2 => prop::collection::vec(0..4_u8, 1..3).prop_map(Event::Calls),
        4 => (0..4_u8).prop_map(Event::Result),
    ]
}

fn history(events: &[Event]) -> Vec<Entry> {
    let id = |id: &u8| format!("call_{id}");
    let messages = events.iter().enumerate().map(|(salt, event)| match event {
        Event::User(sentences) => message(Role::User, &prose(salt, *sentences)),
        Event::Assistant(sentences) => message(Role::Assistant, &prose(salt, *sentences)),
        Event::Notice => message(Role::Notice, "interrupted"),
        Event::Calls(ids) => {
            let ids: Vec<_> = ids.iter().map(id).collect();
            calling("", &ids.iter().map(String::as_str).collect::<Vec<_>>())
        }
        Event::Result(call) => result(&id(call), &prose(salt, 2)),
    });
    entries(messages.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// With each begin of a node: nothing before it is kept or read, all its folded messages are read once, and calls
    /// stay with their results.
    #[test]
    fn the_plan_of_a_node_reads_its_own_messages_and_archives_the_rest(
        events in prop::collection::vec(event(), 0..120),
        node_at in 0..120_i64,
        window in 2_000..20_000_u64,
    ) {
        let (entries, calibration, flow) = (history(&events), Calibration::cold(), flow(node_at + 1));
        let scene = compaction_input(&entries, window, &calibration, &flow);
        let Ok(plan) = plan::plan(&scene) else { return Ok(()) };
        let node_start = usize::try_from(node_at).unwrap().min(entries.len());
        if plan.is_reference {
            return Ok(());
        }
        prop_assert!(plan.fold >= node_start && plan.fold > 0);
        prop_assert_eq!(plan.read.clone(), node_start..plan.fold);
        let first = entries.get(plan.fold);
        prop_assert!(first.is_none_or(|it| matches!(it.message.role, Role::User | Role::Notice)));
        prop_assert!(plan.tail_tokens * 2 <= scene.budget.room_tokens());
        for group in groups::group(&entries, &[]).groups {
            prop_assert!(group.last() < plan.fold || group.head >= plan.fold);
        }
        let mut at = (node_start, 0);
        for piece in plan.batches.iter().flat_map(|batch| &batch.pieces) {
            prop_assert_eq!((piece.index, piece.bytes.start), at);
            at = (piece.index, piece.bytes.end);
            if piece.part == piece.parts {
                prop_assert_eq!(piece.bytes.end, entries[piece.index].message.text.len());
                at = (piece.index + 1, 0);
            }
        }
        prop_assert_eq!(at, (plan.fold, 0));
        // The extract has the same limits, so a faulty summariser stops no turn.
        let seed = seed();
        let (_, step) = FoldDraft::begin(scene, &seed, 1, CompactionSteps::new(0, false)).unwrap();
        let Step::Done(outcome) = step else { return Err(TestCaseError::fail(format!("{step:?}"))) };
        let made = outcome.compaction;
        prop_assert!(made.tokens_after * 4 <= made.tokens_before * 3);
    }
}
