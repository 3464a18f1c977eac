//! Estimates compared with token counts from a provider.

use dalsegno::{
    context::{Calibration, Checkpoint, Entry, assemble, compaction::View},
    providers::{EventSink, Options, Provider, Purpose, Request, Timeouts},
    transcript::Role,
};
use tokio_util::sync::CancellationToken;

use crate::{
    context::support::{entry, message, parts, prose, seed},
    providers::fake_ollama::FakeOllama,
};

#[tokio::test]
async fn after_ten_turns_an_estimate_is_within_ten_per_cent_of_ollamas_count() {
    let fake = FakeOllama::start().await;
    let ollama = fake.client();
    let mut calibration = Calibration::cold();
    let mut anchor: Option<Checkpoint> = None;
    let mut entries: Vec<Entry> = Vec::new();
    let mut worst = 0.0_f64;
    for turn in 0..25 {
        let prompt = prose(turn, 2);
        let view = View::of(&entries, &[], 0).unwrap();
        let assembled = assemble(&parts(view, &prompt), &seed(), &calibration);
        let projected = calibration.project(anchor.as_ref(), assembled.weight);
        let request = Request {
            turn: turn.to_string(),
            purpose: Purpose::Turn,
            model: "qwen3:8b".to_owned(),
            system: assembled.system,
            messages: assembled.messages,
            tools: Vec::new(),
            window_tokens: 4096,
            reserve_tokens: 512,
            estimated_prompt_tokens: u32::try_from(projected).ok(),
            options: Options::default(),
            timeouts: Timeouts::default(),
            conversation: None,
            credential: None,
        };
        let outcome = ollama.run(request, EventSink::discard(), CancellationToken::new()).await;
        let real_tokens = outcome.unwrap().usage.prompt().unwrap();
        if turn >= 10 {
            let error = (projected as f64 - real_tokens as f64).abs() / real_tokens as f64;
            worst = worst.max(error);
        }
        let checkpoint = Checkpoint { weight: assembled.weight, real_tokens };
        calibration.observe(checkpoint);
        anchor = Some(checkpoint);
        for said in [message(Role::User, &prompt), message(Role::Assistant, &prose(turn + 500, 4))]
        {
            entries.push(entry(entries.len() as i64 + 1, said));
        }
    }
    println!(
        "estimates against the fake Ollama: at most {:.2} % off after ten turns",
        worst * 100.0
    );
    assert!(worst <= 0.10, "{worst}");
    assert!(fake.chats().len() == 25);
}
