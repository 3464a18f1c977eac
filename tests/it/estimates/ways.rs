//! The ways in which a turn could begin, their reasons, prices and caches, and the commands.

use chrono::TimeDelta;
use dalsegno::domain::estimates::{Estimate, PriceOrigin, PromptCacheState, TurnPart, Way};

use super::{find, next, of_writer};
use crate::{
    memory::edicts_in_context::publish,
    providers::claude::cli::Cli,
    turns::{claude::Setup, fixture::Fixture},
};

const PRICE: (&str, &str) = (
    "prices.models",
    "[{ provider = \"sim\", model = \"sim-1\", input = 1000000, output = 2000000 }]",
);

#[tokio::test]
async fn a_first_turn_opens_a_session_and_its_answer_is_assumed() {
    let fixture = Fixture::new(&[PRICE]).await;
    let estimate = of_writer(&fixture, &[]).await;
    assert_eq!((estimate.session_id, estimate.turn), (None, 1));
    assert_eq!(estimate.history.assumed_output_tokens, Some(400));
    let next = next(&estimate);
    assert_eq!(next.way, Way::NewSession);
    let charge = next.charge.unwrap();
    let sent = next.first_call_tokens.unwrap();
    assert_eq!((charge.likely.calls, charge.likely.input_tokens), (1, sent));
    assert_eq!(charge.likely.cost_micros, Some(sent + 2 * 400));
    let parts: i64 = next.parts.iter().map(|part| part.likely).sum();
    assert_eq!(parts, charge.likely.tokens(), "{:?}", next.parts);
    for way in [Way::Resume, Way::CompactFirst] {
        let why = find(&estimate, way).impossible.as_deref();
        assert_eq!(why, Some("the conversation has no open session"));
    }
}

#[tokio::test]
async fn a_long_conversation_is_compared_in_three_ways_and_nothing_changes() {
    let fixture = Fixture::new(&[PRICE, ("sim.window_tokens", "16384")]).await;
    let worker = fixture.start_worker().await;
    for part in 1..6 {
        fixture.done(&fixture.add(&format!("Write part {part}. [[sim: words 500]]")).await).await;
    }
    worker.stop().await;
    let rows = "select (select count(*) from dalsegno.sessions) + (select count(*) from dalsegno.tasks)
                     + (select count(*) from dalsegno.compactions) + (select count(*) from dalsegno.messages)";
    let before = fixture.count(rows).await;
    let estimate = of_writer(&fixture, &[]).await;
    assert_eq!(fixture.count(rows).await, before);
    let session = fixture.sessions().await[0].clone();
    assert_eq!((estimate.session_id, estimate.turn), (Some(session.id), 6));
    assert_eq!(estimate.history.conversation_turns, 5);
    let first = |way| find(&estimate, way).first_call_tokens.unwrap();
    let (resume, compact, new) =
        (first(Way::Resume), first(Way::CompactFirst), first(Way::NewSession));
    assert!(new < compact && compact < resume, "{new} {compact} {resume}");
    let part = |way, part| {
        let mut parts = find(&estimate, way).parts.iter();
        parts.find(|it| it.part == part).map_or(0, |it| it.likely)
    };
    assert!(part(Way::Resume, TurnPart::Messages) > 2000);
    assert!(part(Way::CompactFirst, TurnPart::Summary) > 0);
    // The call for the summary reads what is folded.
    let folded =
        part(Way::Resume, TurnPart::Messages) - part(Way::CompactFirst, TurnPart::Messages);
    assert!(part(Way::CompactFirst, TurnPart::Compaction) > folded);
    assert_eq!(part(Way::NewSession, TurnPart::Messages), 0);
    // The next turn outgrows the threshold, and is compacted by itself.
    let full = [("sim.window_tokens", "5120")];
    let estimate = of_writer(&fixture, &full).await;
    assert_eq!(next(&estimate).way, Way::CompactFirst);
    let why = find(&estimate, Way::Resume).impossible.as_deref().unwrap();
    assert!(why.contains("threshold"), "{why}");
}

#[tokio::test]
async fn an_expired_session_is_not_resumed() {
    let fixture = Fixture::new(&[("sessions.ttl_days.sim", "7")]).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    worker.stop().await;
    let estimate = of_writer(&fixture, &[]).await;
    assert_eq!(next(&estimate).way, Way::Resume);
    let why = find(&estimate, Way::CompactFirst).impossible.as_deref().unwrap();
    assert!(why.contains("nothing to compact"), "{why}");
    fixture.advance(TimeDelta::days(30));
    let estimate = of_writer(&fixture, &[]).await;
    assert_eq!(next(&estimate).way, Way::NewSession);
    let why = find(&estimate, Way::Resume).impossible.as_deref();
    assert_eq!(why, Some("the session has expired"));
}

#[tokio::test]
async fn configured_prices_override_published_ones() {
    let fixture = Fixture::new(&[]).await;
    let price = of_writer(&fixture, &[]).await.price.unwrap();
    assert_eq!((price.origin, price.input, price.output), (PriceOrigin::Published, 0, 0));
    let price = of_writer(&fixture, &[PRICE]).await.price.unwrap();
    assert_eq!(
        (price.origin, price.input, price.output),
        (PriceOrigin::Configured, 1_000_000, 2_000_000)
    );
}

#[tokio::test]
async fn a_prompt_cache_expires_and_a_changed_system_part_empties_it() {
    let Some(setup) = Setup::on(&Cli::Fake, &[]).await else { panic!("the fake is built") };
    let fixture = &setup.fixture;
    let before = of_writer(fixture, &[]).await;
    assert_eq!(before.cache.state, PromptCacheState::Empty);
    let price = before.price.unwrap();
    assert_eq!((price.origin, price.model.as_str()), (PriceOrigin::Published, "claude-sonnet-5"));
    assert_eq!((price.input, price.cache_read), (2_000_000, 200_000));
    let worker = fixture.start_worker().await;
    setup.run_prompt("One.").await;
    fixture.settled().await;
    worker.stop().await;
    let cached = of_writer(fixture, &[]).await;
    assert_eq!(cached.cache.state, PromptCacheState::Valid, "{:?}", cached.cache);
    assert!(cached.cache.tokens > 0);
    let read = |estimate: &Estimate| next(estimate).charge.unwrap().likely;
    assert_eq!(read(&cached).cached_tokens, cached.cache.tokens);
    // The CLI has charged the turn.
    let factor = cached.price.as_ref().unwrap().factor;
    assert!(factor > 0.0 && (factor - 1.0).abs() > f64::EPSILON, "{factor}");
    publish(fixture, "tone", "Be brief.").await;
    let changed = of_writer(fixture, &[]).await;
    assert_eq!(next(&changed).way, Way::Resume, "{:?}", changed.ways);
    assert_eq!(changed.cache.state, PromptCacheState::Changed, "{:?}", changed.cache);
    fixture.advance(TimeDelta::seconds(301));
    let expired = of_writer(fixture, &[]).await;
    assert_eq!((expired.cache.state, expired.cache.tokens), (PromptCacheState::Expired, 0));
    assert_eq!(read(&expired).cached_tokens, 0);
    assert!(read(&expired).cost_micros > read(&cached).cost_micros);
}

#[tokio::test]
async fn the_commands_print_the_estimate_and_add_nothing() {
    // Commands have the clock of the system.
    let fixture = Fixture::new(&[PRICE, ("sessions.ttl_days.sim", "3650")]).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part one.").await).await;
    worker.stop().await;
    let run = async |arguments: &[&str]| {
        let output = fixture.run_configured(arguments).await;
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let add =
        ["task", "add", "--estimate", "--campaign", "Harbour", "--agent", "writer", "Part two."];
    let text = run(&add).await;
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for words in
        ["1 earlier turn of this conversation", "resume *", "new session", "answer", "COST (USD)"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(fixture.count("select count(*) from dalsegno.tasks").await, 1);
    let session = fixture.sessions().await[0].clone();
    let id = session.id.to_string();
    let with_prompt = run(&["session", "estimate", &id, "--prompt", "Part two.", "--json"]).await;
    let estimate: Estimate = serde_json::from_str(&with_prompt).unwrap();
    assert_eq!(estimate.session_id, Some(session.id));
    assert!(run(&["session", "estimate", &id]).await.contains("no prompt was given"));
    let shown = run(&["session", "show", &id]).await;
    assert!(session.cost_micros > 0 && shown.contains("\ncost "), "{shown}");
    assert!(run(&["session", "ls"]).await.contains("COST"));
    let both = [&add[..], &["--wait"]].concat();
    assert_eq!(fixture.run_configured(&both).await.status.code(), Some(2));
    run(&["session", "reset", &id, "--fresh"]).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write part three.").await).await;
    worker.stop().await;
    let closed = fixture.run_configured(&["session", "estimate", &id]).await;
    assert!(String::from_utf8(closed.stderr).unwrap().contains("is closed"));
}
