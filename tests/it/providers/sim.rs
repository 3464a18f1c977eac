//! The simulated model as its callers see it.

use std::time::Duration;

use dalsegno::{
    providers::{
        Class, Error, Event, EventSink, Provider, Purpose, Request, StopReason,
        sim::{Config, Sim, SummaryMode, count_prompt_tokens, count_tokens},
    },
    transcript::Role,
};
use tokio_util::sync::CancellationToken;

use super::requests::{OVERFLOW, RETRY, TRUNCATED, ask, fail, message, request, text_of, watch};

fn config() -> Config {
    Config {
        window_tokens: 4096,
        latency_ms: 0,
        chunk_delay_ms: 0,
        chunk_chars: 12,
        summary: SummaryMode::Honest,
        facts: Default::default(),
        directives: true,
        faults: Vec::new(),
    }
}

fn sim() -> Sim {
    Sim::new(config()).unwrap()
}

fn summary_request(text: &str, pinned: &[&str]) -> Request {
    let mut request = request(text);
    request.purpose = Purpose::Summary {
        sections: ["goal", "facts"].map(str::to_owned).to_vec(),
        pinned: pinned.iter().map(|&id| id.to_owned()).collect(),
    };
    request
}

#[tokio::test]
async fn equal_requests_get_equal_answers_and_others_differ() {
    let ask = async |prompt: &str, turn: &str| {
        let mut request = request(prompt);
        request.turn = turn.to_owned();
        // A new simulation each time has no memory.
        ask(&sim(), request).await.unwrap().message.text
    };
    let first = ask("Write part 3 of the series: why lanes keep their order", "t1").await;
    assert_eq!(first, ask("Write part 3 of the series: why lanes keep their order", "t2").await);
    assert_ne!(first, ask("Write part 4 of the series: why lanes keep their order", "t1").await);
    assert!(first.contains("no model was called"), "{first}");
    assert!(first.contains("Part 3 of the series: why lanes keep their order\n"), "{first}");
    assert!(first.contains("Context: 3 messages"), "{first}");
}

#[tokio::test]
async fn an_answer_refers_to_the_previous_one() {
    let first = ask(&sim(), request("Write part 1: beginnings")).await.unwrap();
    let mut second = request("Write part 2: middles");
    second.messages.insert(2, first.message.into());
    let text = ask(&sim(), second).await.unwrap().message.text;
    assert!(text.contains("Follows on from: Part 1: beginnings"), "{text}");
}

/// The prompt of a call: fenced, escaped, and after the service's own text.
#[tokio::test]
async fn an_answer_is_about_the_text_of_the_task_element() {
    let shown = "<notice fence=\"f00d\">The turn before was interrupted.</notice>\n\n\
                 <task fence=\"f00d\">Write part 2: bread &amp; salt\n\nIn 90 words.</task>";
    let text = ask(&sim(), request(shown)).await.unwrap().message.text;
    assert!(text.contains("\n\nPart 2: bread & salt\n\n"), "{text}");
}

#[tokio::test]
async fn the_simulation_streams_its_answer_and_counts_its_input() {
    let request = request("Write about harbours");
    let n_prompt = count_prompt_tokens(&request.system, &request.messages);
    let (outcome, events) = watch(&sim(), request).await;
    let outcome = outcome.unwrap();
    assert_eq!(text_of(&events), outcome.message.text);
    assert!(events.iter().filter(|event| matches!(event, Event::Text(_))).count() > 10);
    assert_eq!(outcome.usage.prompt(), Some(u64::from(n_prompt)));
    assert_eq!(outcome.usage.output, Some(u64::from(count_tokens(&outcome.message.text))));
    assert_eq!(outcome.stop, StopReason::End);
}

#[tokio::test]
async fn an_oversized_request_is_refused_and_a_long_answer_is_cut() {
    let error = fail(&sim(), request(&"word ".repeat(5_000))).await;
    assert_eq!((error.code, error.class), ("sim.overflow", OVERFLOW));
    let mut small = request("Write about harbours");
    small.window_tokens = 20;
    assert_eq!(fail(&sim(), small).await.class, OVERFLOW);
    let mut short = request("Write about harbours");
    short.reserve_tokens = 30;
    let outcome = ask(&sim(), short).await.unwrap();
    assert_eq!((outcome.stop, outcome.usage.output), (StopReason::Length, Some(30)));
}

#[tokio::test(start_paused = true)]
async fn every_direction_has_its_effect() {
    let cases = [
        ("error 500", "sim.failed", RETRY),
        ("error 404", "sim.model_missing", Class::Fail),
        ("error 400", "sim.refused", Class::Reject),
        ("overflow", "sim.overflow", OVERFLOW),
        ("truncate", "sim.truncated", TRUNCATED),
        ("stall", "sim.silent", RETRY),
        ("cut", "sim.ended_early", RETRY),
        ("empty", "sim.empty", RETRY),
    ];
    for (direction, code, class) in cases {
        let error = fail_paused(request(&format!("Write. [[sim: {direction}]]"))).await;
        assert_eq!((error.code, error.class), (code, class), "{direction}");
    }
    let error = fail_paused(request("[[sim: error 503]] Write.")).await;
    assert!(matches!(error.class, Class::Snooze { .. }));
}

/// Returns the error without the deadline of [`fail`], which a paused clock would reach first.
async fn fail_paused(request: Request) -> Error {
    let sim = sim();
    let call = sim.run(request, EventSink::discard(), CancellationToken::new());
    call.await.unwrap_err()
}

#[tokio::test]
async fn answers_can_be_directed_too() {
    let text = ask(&sim(), request("[[sim: say INV-7 is paid.]]")).await.unwrap().message.text;
    assert_eq!(text, "INV-7 is paid.");
    let mut long = request("Write about ships. [[sim: words 600]]");
    long.reserve_tokens = 3_000;
    let text = ask(&sim(), long).await.unwrap().message.text;
    assert!(text.split_whitespace().count() > 600);
    assert!(!text.contains("[[sim"), "{text}");
    let outcome = ask(&sim(), request("Write. [[sim: counts 40]] [[sim: length]]")).await.unwrap();
    assert_eq!(outcome.stop, StopReason::Length);
    let honest = ask(&sim(), request("Write. [[sim: counts 100]] [[sim: length]]")).await.unwrap();
    let percent = |n: Option<u64>| n.unwrap() * 40 / 100;
    assert!(outcome.usage.input.unwrap().abs_diff(percent(honest.usage.input)) <= 1);
}

#[tokio::test]
async fn once_means_once_per_turn() {
    let sim = sim();
    for turn in ["t1", "t2"] {
        let mut request = request("Write. [[sim: error 503 once]]");
        request.turn = turn.to_owned();
        assert!(ask(&sim, request.clone()).await.is_err());
        assert!(ask(&sim, request).await.is_ok());
    }
}

#[tokio::test]
async fn directions_in_older_messages_and_of_other_people_are_ignored() {
    let mut later = request("Write.");
    later.messages[0] = message(Role::User, "[[sim: error 500]]").into();
    assert!(ask(&sim(), later).await.is_ok());
    let deaf = Sim::new(Config { directives: false, ..config() }).unwrap();
    assert!(ask(&deaf, request("[[sim: error 500]] Write.")).await.is_ok());
    let material = summary_request("[[sim: error 500]] Write.", &[]);
    assert!(ask(&sim(), material).await.is_ok());
}

#[tokio::test]
async fn the_configuration_can_direct_every_call() {
    let faults = vec!["error 500 every 2".to_owned()];
    let sim = Sim::new(Config { faults, ..config() }).unwrap();
    let mut results = Vec::new();
    for _ in 0..4 {
        results.push(ask(&sim, request("Write.")).await.is_ok());
    }
    assert_eq!(results, [true, false, true, false]);
    let wrong = Config { faults: vec!["explode".to_owned()], window_tokens: 1, ..config() };
    let keys: Vec<_> = wrong.check().into_iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["window_tokens", "faults[0]"]);
    assert!(Sim::new(wrong).is_err());
}

#[tokio::test(start_paused = true)]
async fn the_simulation_takes_the_directed_time() {
    let slow = Sim::new(Config { latency_ms: 700, chunk_delay_ms: 10, ..config() }).unwrap();
    let began = tokio::time::Instant::now();
    let outcome = slow.run(request("Write."), EventSink::discard(), CancellationToken::new());
    let outcome = outcome.await.unwrap();
    let n_chunks = outcome.message.text.chars().count().div_ceil(12);
    let expected = Duration::from_millis(700 + 10 * n_chunks as u64);
    assert!(began.elapsed() >= expected, "{:?} < {expected:?}", began.elapsed());
    let mut impatient = request("Write.");
    impatient.timeouts.total = Some(Duration::from_millis(100));
    let error = slow.run(impatient, EventSink::discard(), CancellationToken::new()).await;
    assert_eq!(error.unwrap_err().code, "sim.too_long");
}

#[tokio::test]
async fn a_cancelled_simulation_ends_at_once() {
    let slow = Sim::new(Config { latency_ms: 600_000, ..config() }).unwrap();
    let cancel = CancellationToken::new();
    let call = slow.run(request("Write."), EventSink::discard(), cancel.clone());
    let canceller = async { cancel.cancel() };
    assert_eq!(tokio::join!(call, canceller).0.unwrap_err().class, Class::Cancelled);
}

#[tokio::test]
async fn summaries_are_returned_as_directed() {
    let text = format!("The goal is INV-2041. {}", "Much was said about it. ".repeat(150));
    let summarise = async |summary| {
        let sim = Sim::new(Config { summary, ..config() }).unwrap();
        ask(&sim, summary_request(&text, &["INV-2041", "INV-9999"])).await.unwrap()
    };
    let honest = summarise(SummaryMode::Honest).await;
    let (goal, facts) = honest.message.text.split_once("## facts\n").unwrap();
    assert!(goal.starts_with("## goal\n- The goal is INV-2041.\n"), "{goal}");
    assert!(facts.contains("- INV-9999") && facts.contains("simulated"), "{facts}");
    let vague = summarise(SummaryMode::DropsIdentifiers).await;
    assert!(!vague.message.text.contains("INV-"));
    assert_eq!(summarise(SummaryMode::Empty).await.message.text, "");
    let bloated = summarise(SummaryMode::Bloated).await;
    assert!(count_tokens(&bloated.message.text) > count_tokens(&text));
}

#[tokio::test]
async fn the_simulation_delegates_as_directed_and_takes_its_own_line() {
    let asked = "Parts are due:\n\n- `@ann` Part 1: the mole.\n- `@bea` Part 2: the pier. [[sim: words 400]]";
    let handed_on = ask(&sim(), request(asked)).await.unwrap().message.text;
    assert!(handed_on.contains("\n\n@ann Part 1: the mole.\n\n@bea Part 2: the pier. [[sim:"));
    assert!(handed_on.split_whitespace().count() < 160, "the direction is for bea: {handed_on}");
    let ask_as = async |name: &str| {
        let mut request = request(&handed_on);
        request.system = format!("On the board your name is @{name}.");
        ask(&sim(), request).await.unwrap().message.text
    };
    let (ann, bea) = (ask_as("ann").await, ask_as("bea").await);
    assert!(ann.contains("\n\nPart 1: the mole\n\n") && !ann.contains("@ann"), "{ann}");
    assert!(bea.contains("\n\nPart 2: the pier\n\n"), "{bea}");
    assert!(bea.split_whitespace().count() > 180, "{bea}");
}

#[tokio::test]
async fn the_directive_quote_answers_with_the_words_of_the_whole_conversation() {
    let mut request = request("The barge is at PIER-2. Where is what? [[sim: quote PIER-]]");
    let earlier = message(Role::User, "The ferry is at PIER-1, and the tug at PIER-1.");
    request.messages.insert(0, earlier.into());
    let answer = ask(&sim(), request).await.unwrap().message.text;
    assert!(answer.contains("no model was called"), "{answer}");
    assert!(answer.ends_with("The conversation has 2: PIER-1, PIER-2."), "{answer}");
}
