//! Turns that fill the window, in each kind of text: one compaction always makes space for a small task.

use dalsegno::{
    context::{
        Budget, Calibration, Checkpoint, Entry, Weight, assemble,
        compaction::{
            Compaction, FoldDraft, Keep, Policy, Step, View,
            ladder::CompactionSteps,
            plan::{self, CompactionInput},
        },
    },
    transcript::Role,
};

use super::support::{entries, entry, message, parts, seed};
use crate::turns::heavy::{SCRIPTS, text, weigh};

const SMALL_TASK: &str = "Now write one line.";

/// Returns a calibration that has learnt this factor.
fn factor(per_cent: u64) -> Calibration {
    let mut calibration = Calibration::cold();
    let weight = Weight::from_millitokens(1_000_000);
    calibration.observe(Checkpoint { weight, real_tokens: per_cent * 10 });
    calibration
}

/// Returns one more compaction of the conversation, without a model.
fn compacted(scene: CompactionInput<'_>) -> Compaction {
    let seed = seed();
    let generation = scene.view.generation() + 1;
    let (_, step) =
        FoldDraft::begin(scene, &seed, generation, CompactionSteps::new(0, false)).unwrap();
    match step {
        Step::Done(outcome) => outcome.compaction,
        step => panic!("{step:?}"),
    }
}

fn compaction_input<'a>(
    entries: &'a [Entry],
    budget: Budget,
    calibration: &'a Calibration,
) -> CompactionInput<'a> {
    CompactionInput {
        view: View::of(entries, &[], 0).unwrap(),
        budget,
        calibration,
        upcoming_tokens: calibration.tokens(Weight::of_user_text(SMALL_TASK)),
        summariser_window_tokens: budget.window_tokens(),
        policy: Policy::default(),
        node: None,
    }
}

/// Builds turns of these percentages of the available space. The prompt has nine tenths of a turn and the answer one,
/// or the other way round.
fn turns(unit: &str, per_cent: &[u64], room: u64, is_answer: bool) -> Vec<Entry> {
    let said = per_cent.iter().flat_map(|per_cent| {
        let tokens = room * per_cent / 100;
        let [heavy, light] = [tokens * 9 / 10, tokens / 10].map(|size| text(unit, size, weigh));
        let [prompt, answer] = if is_answer { [light, heavy] } else { [heavy, light] };
        [message(Role::User, &prompt), message(Role::Assistant, &answer)]
    });
    entries(said.collect())
}

#[test]
fn a_small_task_fits_after_one_compaction_for_any_content_of_the_window() {
    let shares: [u64; 4] = [30, 50, 70, 90];
    let mut n_compacted = 0;
    for (name, unit) in SCRIPTS {
        for (window, per_cent) in [(4_096, 150), (8_192, 60), (8_192, 150), (32_768, 100)] {
            let calibration = factor(per_cent);
            let budget = Budget::new(window, Budget::default_reserve(window), 300).unwrap();
            let room = budget.room_tokens() * 100 / per_cent;
            for (share, n_turns, is_answer) in shares
                .into_iter()
                .flat_map(|share| (1..=4).map(move |n| (share, n)))
                .flat_map(|(share, n)| [(share, n, false), (share, n, true)])
            {
                let entries = turns(unit, &vec![share; n_turns], room, is_answer);
                let scene = compaction_input(&entries, budget, &calibration);
                let before = calibration.tokens(entries.iter().map(|it| it.weight).sum());
                if (before + scene.upcoming_tokens) * 100 < budget.room_tokens() * 86 {
                    continue;
                }
                n_compacted += 1;
                let made = [compacted(scene)];
                let view = View::of(&entries, &made, 1).unwrap();
                let sent = assemble(&parts(view, SMALL_TASK), &seed(), &calibration);
                let tokens = calibration.tokens(sent.weight);
                let most = window - budget.reserve_tokens();
                assert!(tokens <= most, "{name} {window} {share} x {n_turns}: {tokens} of {most}");
                assert!(!made[0].is_reference(), "{name} {window} {share} x {n_turns}");
            }
        }
    }
    assert!(n_compacted > 300, "{n_compacted}");
}

#[test]
fn the_last_two_turns_stay_while_they_take_half_of_the_window() {
    let calibration = factor(100);
    let budget = Budget::new(8_192, 2_048, 300).unwrap();
    let kept = |per_cent: &[u64]| {
        let entries = turns(SCRIPTS[0].1, per_cent, budget.room_tokens(), false);
        let made = [compacted(compaction_input(&entries, budget, &calibration))];
        let view = View::of(&entries, &made, 1).unwrap();
        view.tail.iter().filter(|entry| entry.message.role == Role::User).count()
    };
    assert_eq!(kept(&[40, 30, 20, 20]), 2);
    assert_eq!(kept(&[20, 20, 40, 40]), 1);
    assert_eq!(kept(&[20, 20, 60]), 0);
    // A manual compaction would save little: the last two turns are kept verbatim anyway.
    let entries = turns(SCRIPTS[0].1, &[6, 10, 10], budget.room_tokens(), false);
    let refused = plan::plan(&compaction_input(&entries, budget, &calibration));
    assert!(matches!(refused, Err(plan::Error::NothingToGain { .. })), "{refused:?}");
}

#[test]
fn a_task_that_leaves_no_room_for_a_summary_gets_a_reference_and_keeps_the_prompts() {
    let calibration = factor(100);
    let budget = Budget::new(8_192, 2_048, 300).unwrap();
    let said =
        [message(Role::User, "PIN: never name the client"), message(Role::Assistant, "Yes.")];
    let entries = entries(said.to_vec());
    let upcoming_tokens = budget.room_tokens() - 20;
    let scene =
        CompactionInput { upcoming_tokens, ..compaction_input(&entries, budget, &calibration) };
    let made = compacted(scene);
    assert!(made.is_reference(), "{made:?}");
    assert_eq!((made.from_seq, made.to_seq), (1, 2));
    let kept = &made.prompts.kept;
    assert!(kept.iter().any(|it| it.text.contains("never name the client")), "{made:?}");
    // The same applies if the provider has rejected the summary, too.
    let refused = Policy { keep: Keep::Reference, ..Policy::default() };
    let scene = CompactionInput { upcoming_tokens: 20, policy: refused, ..scene };
    assert!(compacted(scene).is_reference());
}

/// Names in each prompt, long prompts first, and two heavy turns before each compaction. When prompts move to the
/// archive, their names move to the summary, which needs space for them.
#[test]
fn names_outlive_their_prompts_even_after_heavy_turns() {
    let calibration = Calibration::cold();
    let budget = Budget::new(8_192, 1_024, 300).unwrap();
    let name = |turn: usize| format!("“Pier {turn} & Sons”");
    let mut n_compactions = 0;
    for heavy in (30..75).step_by(5) {
        let mut entries = Vec::new();
        let mut made: Vec<Compaction> = Vec::new();
        for turn in 0..120 {
            let filler = text(SCRIPTS[0].1, if turn % 4 < 2 { 60 } else { heavy * 20 }, weigh);
            let [prompt, answer] = match turn % 3 {
                0 => [filler.as_str(), "Done."],
                _ => ["Go on.", filler.as_str()],
            };
            let prompt = format!("{prompt} It is for {}.", name(turn));
            for said in [message(Role::User, &prompt), message(Role::Assistant, answer)] {
                entries.push(entry(entries.len() as i64 + 1, said));
            }
            let generation = made.last().map_or(0, |made| made.generation);
            let view = View::of(&entries, &made, generation).unwrap();
            let scene =
                CompactionInput { view, ..compaction_input(&entries, budget, &calibration) };
            let stands_in = view.compaction.map_or(Weight::ZERO, Compaction::weight);
            let shown = stands_in + view.tail.iter().map(|it| it.weight).sum();
            if calibration.tokens(shown) * 100 < budget.room_tokens() * 75 {
                continue;
            }
            let compaction = compacted(scene);
            n_compactions += 1;
            let tail = entries.iter().filter(|it| it.seq > compaction.to_seq);
            let tail: Vec<_> = tail.map(|it| it.message.text.as_str()).collect();
            let kept = compaction.prompts.kept.iter().map(|it| it.text.as_str());
            let kept: Vec<_> = kept.chain([compaction.summary.as_str()]).chain(tail).collect();
            let kept = kept.join("\n");
            let is_lost = |turn: &usize| !kept.contains(name(*turn).trim_matches(['“', '”']));
            let lost: Vec<_> = (0..=turn).filter(is_lost).collect();
            assert!(lost.is_empty(), "{heavy}: {lost:?} lost in {}", compaction.generation);
            made.push(compaction);
        }
    }
    assert!(n_compactions > 50, "{n_compactions}");
}
