//! A conversation of four hundred turns through a small window, with honest and dishonest summarisers.

use std::{collections::BTreeMap, sync::Arc};

use dalsegno::{
    context::{
        AssembledContext, Budget, Calibration, Checkpoint, Entry, Parts, Pressure, Thresholds,
        Weight, assemble,
        compaction::{
            Compaction, FoldDraft, Policy, Step, View,
            ladder::{Breaker, CompactionStep, CompactionSteps},
            pins::{Pin, PinKind, Speaker},
            plan::{self, CompactionInput},
            prompt::Request,
            sections::SECTIONS,
        },
        xml,
    },
    transcript::{Message, Role},
};

use super::{
    script::{has_tool_identifier, identifier, is_requirement, mention, planted, prompt, reply},
    support::{Tokeniser, calling, entry, message, parts, prose, result, seed},
};

const WINDOW_TOKENS: u64 = 8_192;
const TURNS: usize = 400;
const TOKENISER: Tokeniser = Tokeniser { letters: 4, per_han: 2, per_message: 5 };

type Summariser = fn(&Request) -> Result<String, String>;

/// Returns the prompt with XML references resolved, as the model reads it.
fn plain_prompt(request: &Request) -> String {
    xml::unescape(&request.prompt).into_owned()
}

fn must_keep(request: &Request) -> Vec<String> {
    let Some((_, list)) = request.prompt.split_once("<must_keep fence=\"") else {
        return Vec::new();
    };
    let (_, list) = list.split_once('>').unwrap();
    let (list, _) = list.split_once("</must_keep>").unwrap();
    list.lines().map(str::to_owned).collect()
}

fn record(lines: &[String]) -> String {
    let mut text = String::new();
    for (title, _) in SECTIONS {
        text.push_str(&format!("## {title}\n"));
        if title == "Facts and identifiers" {
            lines.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
        } else {
            text.push_str("The series goes on.\n");
        }
    }
    text
}

fn honest(request: &Request) -> Result<String, String> {
    Ok(record(&must_keep(request)))
}

fn drops_identifiers(request: &Request) -> Result<String, String> {
    let kept: Vec<_> = must_keep(request).into_iter().skip(1).collect();
    Ok(record(&kept))
}

fn returns_nothing(_: &Request) -> Result<String, String> {
    Ok("  \n".to_owned())
}

fn returns_more_than_it_got(request: &Request) -> Result<String, String> {
    let mut lines = must_keep(request);
    lines.push(plain_prompt(request).replace('\n', " "));
    lines.push(plain_prompt(request).replace('\n', " "));
    Ok(record(&lines))
}

fn declines(_: &Request) -> Result<String, String> {
    Ok("I'm sorry, but I can't summarise this conversation.".to_owned())
}

fn forgets_sections(request: &Request) -> Result<String, String> {
    Ok(must_keep(request).join("\n"))
}

fn alters_identifiers(request: &Request) -> Result<String, String> {
    let altered: Vec<_> = must_keep(request).iter().map(|line| format!("{line}0")).collect();
    Ok(record(&altered))
}

fn does_not_answer(_: &Request) -> Result<String, String> {
    Err("connection refused".to_owned())
}

struct Session {
    entries: Vec<Entry>,
    compactions: Vec<Compaction>,
    generation: u32,
    calibration: Calibration,
    anchor: Option<Checkpoint>,
    breaker: Breaker,
    planted: Vec<String>,
    report: Report,
}

#[derive(Default)]
struct Report {
    compactions: usize,
    refused: usize,
    by_rung: BTreeMap<String, usize>,
    attempt_turns: Vec<usize>,
    largest_call_tokens: u64,
    checked: usize,
}

impl Report {
    fn print(&self, summariser: &str) {
        println!(
            "{summariser}: {} compactions by {:?}, {} of {} summaries refused, {} look-ups of planted strings, largest call {} tokens",
            self.compactions,
            self.by_rung,
            self.refused,
            self.attempt_turns.len(),
            self.checked,
            self.largest_call_tokens
        );
    }
}

impl Session {
    fn new() -> Self {
        Self {
            entries: Vec::new(),
            compactions: Vec::new(),
            generation: 0,
            calibration: Calibration::cold(),
            anchor: None,
            breaker: Breaker::default(),
            planted: Vec::new(),
            report: Report::default(),
        }
    }

    fn turn(&mut self, turn: usize, first: Summariser, alternate: Option<Summariser>) {
        let prompt = prompt(turn);
        let mut assembled = self.assemble(&prompt);
        let budget = self.budget(&assembled);
        let projected = self.calibration.project(self.anchor.as_ref(), assembled.weight);
        if budget.pressure(projected, &Thresholds::default()) >= Pressure::Apply {
            self.compact(turn, budget, &prompt, first, alternate);
            assembled = self.assemble(&prompt);
            self.check_planted(&assembled);
        }
        let real_tokens = TOKENISER.count_call(&assembled.system, &assembled.messages);
        assert!(
            real_tokens <= WINDOW_TOKENS - budget.reserve_tokens(),
            "turn {turn}: {real_tokens}"
        );
        self.report.largest_call_tokens = self.report.largest_call_tokens.max(real_tokens);
        let checkpoint = Checkpoint { weight: assembled.weight, real_tokens };
        self.calibration.observe(checkpoint);
        self.anchor = Some(checkpoint);
        self.commit(turn, &prompt);
    }

    fn compact(
        &mut self,
        turn: usize,
        budget: Budget,
        prompt: &str,
        first: Summariser,
        alternate: Option<Summariser>,
    ) {
        let before = self.visible_messages(prompt);
        let upcoming_tokens = self.calibration.tokens(Weight::of_user_text(prompt));
        let calibration = self.calibration;
        let scene = CompactionInput {
            view: self.view(),
            budget,
            calibration: &calibration,
            upcoming_tokens,
            summariser_window_tokens: WINDOW_TOKENS,
            policy: Policy::default(),
            node: None,
        };
        let ladder =
            CompactionSteps::new(self.breaker.attempts_left(turn as i64), alternate.is_some());
        let next = self.compactions.len() as u32 + 1;
        let seed = seed();
        let (mut folding, mut step) = FoldDraft::begin(scene, &seed, next, ladder).unwrap();
        let mut attempts = 0;
        let outcome = loop {
            match step {
                Step::Ask { rung, request, begins_attempt } => {
                    attempts += usize::from(begins_attempt);
                    let asked = TOKENISER.count(&request.system) + TOKENISER.count(&request.prompt);
                    assert!(
                        asked + request.reply_max_tokens <= WINDOW_TOKENS,
                        "turn {turn}: input of {asked} tokens"
                    );
                    let summariser =
                        if rung == CompactionStep::Alternate { alternate.unwrap() } else { first };
                    let answer = summariser(&request);
                    step = folding.process_answer(answer.as_deref().map_err(Clone::clone));
                }
                Step::Done(outcome) => break outcome,
                Step::Park { refused } => panic!("turn {turn} parked: {refused:?}"),
            }
        };

        drop(folding);
        for _ in 0..attempts {
            self.breaker.record(turn as i64);
            self.report.attempt_turns.push(turn);
        }
        assert_eq!(outcome.pins_dropped, 0, "turn {turn}");
        let compaction = outcome.compaction;
        assert!(compaction.tokens_after * 4 <= compaction.tokens_before * 3);
        self.report.compactions += 1;
        self.report.refused += outcome.refused.len();
        *self.report.by_rung.entry(format!("{:?}", outcome.rung)).or_default() += 1;
        // Undoing restores exactly the previous view.
        self.generation = compaction.parent;
        self.compactions.push(compaction);
        assert_eq!(self.visible_messages(prompt), before);
        self.generation = next;
    }

    fn commit(&mut self, turn: usize, prompt: &str) {
        let mut add = |message| self.entries.push(entry(self.entries.len() as i64 + 1, message));
        add(message(Role::User, prompt));
        if turn % 5 == 2 {
            let mut found = prose(turn, 4);
            if has_tool_identifier(turn) {
                found.push_str(&format!(" Found {}.", mention(&identifier(turn, 1))));
            }
            add(calling("I look it up.", &["call_0", "call_1"]));
            add(result("call_0", &found));
            add(result("call_1", &prose(turn + 1, 4)));
        }
        add(message(Role::Assistant, &reply(turn)));
        self.planted.extend(planted(turn));
    }

    fn check_planted(&mut self, assembled: &AssembledContext) {
        let mut context = xml::unescape(&assembled.system).into_owned();
        for message in &assembled.messages {
            context.push_str(&xml::unescape(&message.text));
        }
        for text in &self.planted {
            assert!(context.contains(text), "{text} is lost");
            self.report.checked += 1;
        }
    }

    fn view(&self) -> View<'_> {
        View::of(&self.entries, &self.compactions, self.generation).unwrap()
    }

    fn assemble(&self, prompt: &str) -> AssembledContext {
        assemble(&self.parts(prompt), &seed(), &self.calibration)
    }

    fn parts<'a>(&'a self, prompt: &'a str) -> Parts<'a> {
        parts(self.view(), prompt)
    }

    fn visible_messages(&self, prompt: &str) -> Vec<Arc<Message>> {
        self.assemble(prompt).messages
    }

    fn budget(&self, assembled: &AssembledContext) -> Budget {
        let system_tokens = self.calibration.tokens(assembled.system_weight);
        Budget::new(WINDOW_TOKENS, Budget::default_reserve(WINDOW_TOKENS), system_tokens).unwrap()
    }
}

fn run_script(first: Summariser, alternate: Option<Summariser>) -> Report {
    let mut session = Session::new();
    for turn in 0..TURNS {
        session.turn(turn, first, alternate);
    }
    let identifiers = session.planted.iter().filter(|text| !is_requirement(text)).count();
    assert_eq!((identifiers, session.planted.len()), (60, 70));
    assert!(session.report.compactions >= 10);
    assert_few_attempts(&session.report.attempt_turns);
    session.report
}

fn assert_few_attempts(turns: &[usize]) {
    for first in 0..TURNS {
        let window = first..first + 10;
        let attempts = turns.iter().filter(|turn| window.contains(*turn)).count();
        assert!(attempts <= 3, "{attempts} attempts in ten turns from {first}");
    }
}

#[test]
fn an_honest_summariser_keeps_everything_at_the_first_attempt() {
    let report = run_script(honest, None);
    report.print("honest");
    assert_eq!(report.refused, 0);
    assert_eq!(report.by_rung.keys().collect::<Vec<_>>(), ["First"]);
}

#[test]
fn every_dishonest_summariser_is_refused_and_the_turn_continues() {
    let dishonest: [(&str, Summariser); 7] = [
        ("drops identifiers", drops_identifiers),
        ("returns nothing", returns_nothing),
        ("returns more than it got", returns_more_than_it_got),
        ("declines", declines),
        ("forgets sections", forgets_sections),
        ("alters identifiers", alters_identifiers),
        ("does not answer", does_not_answer),
    ];
    for (name, summariser) in dishonest {
        let report = run_script(summariser, None);
        report.print(name);
        assert_eq!(report.refused, report.attempt_turns.len(), "{name}");
        assert!(report.refused >= report.compactions, "{name}");
        assert_eq!(report.by_rung.keys().collect::<Vec<_>>(), ["Extract"], "{name}");
    }
}

#[test]
fn an_honest_alternate_replaces_the_summariser() {
    let report = run_script(drops_identifiers, Some(honest));
    report.print("honest alternate");
    assert!(report.by_rung["Alternate"] > 0);
    assert!(!report.by_rung.contains_key("First"));
}

/// Builds a view of many short turns and one message that is longer than any window.
fn long_entries() -> Vec<Entry> {
    let messages = (0..60).flat_map(|turn| {
        let length = if turn == 20 { 900 } else { 8 };
        let text = format!("{} It is INV-2031-{turn:04}.", prose(turn, length));
        [message(Role::User, &text), message(Role::Assistant, &prose(turn + 100, 8))]
    });
    (1..).zip(messages).map(|(seq, message)| entry(seq, message)).collect()
}

fn fold_at_once(entries: &[Entry], window_tokens: u64, summariser: Summariser) -> (usize, Step) {
    fold_elsewhere(entries, window_tokens, window_tokens, summariser)
}

/// Folds with a summariser whose window differs from the conversation's.
fn fold_elsewhere(
    entries: &[Entry],
    window_tokens: u64,
    summariser_window_tokens: u64,
    summariser: Summariser,
) -> (usize, Step) {
    let calibration = Calibration::cold();
    let scene = CompactionInput {
        view: View::of(entries, &[], 0).unwrap(),
        budget: Budget::new(window_tokens, Budget::default_reserve(window_tokens), 300).unwrap(),
        calibration: &calibration,
        upcoming_tokens: 50,
        summariser_window_tokens,
        policy: Policy::default(),
        node: None,
    };
    let seed = seed();
    let (mut folding, mut step) =
        FoldDraft::begin(scene, &seed, 1, CompactionSteps::new(3, false)).unwrap();
    let mut asked = 0;
    while let Step::Ask { request, .. } = &step {
        asked += 1;
        let tokens = TOKENISER.count(&request.system) + TOKENISER.count(&request.prompt);
        assert!(
            tokens + request.reply_max_tokens <= summariser_window_tokens,
            "input of {tokens} tokens"
        );
        let answer = summariser(request);
        step = folding.process_answer(answer.as_deref().map_err(Clone::clone));
    }
    (asked, step)
}

#[test]
fn an_input_beyond_the_summarisers_window_is_compacted_in_batches() {
    let entries = long_entries();
    let (asked, step) = fold_at_once(&entries, 8_192, honest);
    let Step::Done(outcome) = step else { panic!("{step:?}") };
    assert!(asked > 5, "{asked} batches");
    assert_eq!(outcome.rung, CompactionStep::First);
    let folded = entries.iter().filter(|entry| entry.seq <= outcome.compaction.to_seq);
    for entry in folded.filter(|entry| entry.message.role == Role::User) {
        let (_, identifier) = entry.message.text.rsplit_once(' ').unwrap();
        let identifier = identifier.trim_end_matches('.');
        let Compaction { summary, prompts, .. } = &outcome.compaction;
        let mut kept = prompts.kept.iter();
        assert!(summary.contains(identifier) || kept.any(|it| it.text.contains(identifier)));
    }
}

#[test]
fn a_window_of_four_thousand_tokens_is_enough_for_a_summariser() {
    let (asked, step) = fold_at_once(&long_entries()[..40], 4_096, honest);
    let Step::Done(outcome) = step else { panic!("{step:?}") };
    assert!(asked > 0);
    assert_eq!((outcome.rung, outcome.refused.len()), (CompactionStep::First, 0));
}

#[test]
fn with_a_window_too_small_for_a_summary_an_extract_names_the_reason() {
    let (asked, step) = fold_elsewhere(&long_entries(), 8_192, 1_500, honest);
    let Step::Done(outcome) = step else { panic!("{step:?}") };
    assert_eq!((asked, outcome.rung), (0, CompactionStep::Extract));
    assert!(outcome.refused[0].refusals[0].to_string().contains("with a larger window"));
}

#[test]
fn a_pin_lost_between_batches_is_detected_in_that_batch() {
    let entries = long_entries();
    let (asked, step) = fold_at_once(&entries, 8_192, drops_identifiers);
    let Step::Done(outcome) = step else { panic!("{step:?}") };
    assert_eq!((asked, outcome.rung), (2, CompactionStep::Extract));
}

#[test]
fn with_nothing_to_compact_the_error_names_the_next_step() {
    let entries = long_entries();
    let calibration = Calibration::cold();
    let scene = |entries, upcoming_tokens| CompactionInput {
        view: View::of(entries, &[], 0).unwrap(),
        budget: Budget::new(8_192, 2_048, 300).unwrap(),
        calibration: &calibration,
        upcoming_tokens,
        summariser_window_tokens: 8_192,
        policy: Policy::default(),
        node: None,
    };
    let plan = |scene| plan::plan(&scene).unwrap_err().to_string();
    assert!(plan(scene(&entries[..4], 0)).contains("nothing to compact"));
    // Too much for a summary, but not for the conversation as it is.
    assert!(plan(scene(&entries[..4], 5_000)).contains("a summary does not fit"));
}

#[test]
fn a_heavy_tail_displaces_no_pin_of_a_person() {
    let calibration = Calibration::cold();
    let pins: Vec<_> = (0..60)
        .map(|n| Pin {
            kind: PinKind::Identifier,
            text: format!("INV-2031-{n:04}"),
            voice: Speaker::Person,
        })
        .collect();
    let compaction = Compaction {
        generation: 1,
        parent: 0,
        from_seq: 1,
        to_seq: 2,
        summary: "It goes on. ".repeat(150),
        flow: None,
        prompts: Default::default(),
        pins: pins.clone(),
        tokens_before: 4_000,
        tokens_after: 1_000,
    };
    // Short turns, then two verbatim turns that leave less than the pins need.
    let heavy = "The tide comes in and the boats go out. ".repeat(65);
    let messages = (0..24).map(|n| {
        let text = if n < 20 { format!("Part {n}. {}", &heavy[..300]) } else { heavy.clone() };
        message(if n % 2 == 0 { Role::User } else { Role::Assistant }, &text)
    });
    let entries: Vec<_> = (3..).zip(messages).map(|(seq, message)| entry(seq, message)).collect();
    let compactions = [compaction];
    let scene = CompactionInput {
        view: View::of(&entries, &compactions, 1).unwrap(),
        budget: Budget::new(8_192, 1_024, 300).unwrap(),
        calibration: &calibration,
        upcoming_tokens: 100,
        summariser_window_tokens: 8_192,
        policy: Policy::default(),
        node: None,
    };
    let seed = seed();
    let (folding, _) = FoldDraft::begin(scene, &seed, 2, CompactionSteps::new(3, false)).unwrap();
    let kept: Vec<_> = folding.pins().iter().map(|pin| pin.text.as_str()).collect();
    let lost: Vec<_> = pins.iter().filter(|pin| !kept.contains(&pin.text.as_str())).collect();
    println!("room for the summary: {} tokens", folding.plan().summary_max_tokens);
    assert!(lost.is_empty(), "{} lost", lost.len());
}
