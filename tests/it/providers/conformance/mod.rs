//! Behaviours that every provider over HTTP has, checked against a scripted server in the dialect of each.
//!
//! A new provider adds a file to `dialects/`, and one line to `DIALECTS` and to the tests below. `docs/reference/providers.md` is made of
//! these lists.

mod answers;
pub mod batches;
pub mod dialects;
mod document;
mod faults;
mod hosts;
mod refusals;
mod requests;
pub mod server;
mod streams;
mod timeouts;
mod tools;

use std::pin::Pin;

use self::dialects::Dialect;

type Check = fn(&'static dyn Dialect) -> Pin<Box<dyn Future<Output = ()>>>;

/// Something that a provider does with any server.
pub struct Behaviour {
    pub name: &'static str,
    run: Check,
}

/// Behaviours of one kind.
pub struct Group {
    pub title: &'static str,
    pub behaviours: &'static [Behaviour],
}

/// Lists the functions that check behaviours.
macro_rules! behaviours {
    ($($name:ident),* $(,)?) => {
        pub const BEHAVIOURS: &[super::Behaviour] = &[
            $(super::Behaviour { name: stringify!($name), run: |dialect| Box::pin($name(dialect)) }),*
        ];
    };
}
use behaviours;

pub const DIALECTS: [&dyn Dialect; 3] =
    [&dialects::Ollama, &dialects::OpenAi, &dialects::Anthropic];

pub const GROUPS: [Group; 8] = [
    Group { title: "Answers", behaviours: answers::BEHAVIOURS },
    Group { title: "Streams", behaviours: streams::BEHAVIOURS },
    Group { title: "Tools", behaviours: tools::BEHAVIOURS },
    Group { title: "Requests", behaviours: requests::BEHAVIOURS },
    Group { title: "Refusals", behaviours: refusals::BEHAVIOURS },
    Group { title: "Faults", behaviours: faults::BEHAVIOURS },
    Group { title: "Timeouts", behaviours: timeouts::BEHAVIOURS },
    Group { title: "Hosts", behaviours: hosts::BEHAVIOURS },
];

/// Checks all behaviours of a group, and reports all that fail.
async fn check(dialect: &'static dyn Dialect, group: &Group) {
    let mut failed = Vec::new();
    for behaviour in group.behaviours {
        if dialect.lacks().iter().any(|(name, _)| *name == behaviour.name) {
            continue;
        }
        let tasks = tokio::task::LocalSet::new();
        let run = tasks.spawn_local((behaviour.run)(dialect));
        if tasks.run_until(run).await.is_err() {
            failed.push(behaviour.name);
        }
    }
    assert!(failed.is_empty(), "{} fails at: {failed:#?}", dialect.name());
}

/// Makes a test for each group.
macro_rules! conforms {
    ($($module:ident: $at:literal),* $(,)?) => {$(
        mod $module {
            use super::{DIALECTS, GROUPS, check};

            conforms!(@groups $at, answers 0, streams 1, tools 2, requests 3, refusals 4, faults 5, timeouts 6, hosts 7);
        }
    )*};
    (@groups $at:literal, $($group:ident $place:literal),*) => {$(
        #[tokio::test]
        async fn $group() {
            check(DIALECTS[$at], &GROUPS[$place]).await;
        }
    )*};
}

conforms!(ollama: 0, openai: 1, anthropic: 2);

#[test]
fn the_suite_is_large_and_its_names_are_unique() {
    let names: Vec<_> =
        GROUPS.iter().flat_map(|group| group.behaviours).map(|it| it.name).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    for dialect in DIALECTS {
        for (name, _) in dialect.lacks() {
            assert!(names.contains(name), "{name} of {} is not a behaviour", dialect.name());
        }
        assert!(names.len() - dialect.lacks().len() >= 60, "{}", dialect.name());
    }
}
