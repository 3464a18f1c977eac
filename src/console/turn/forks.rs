//! The form that forks a conversation at a turn.

use maud::{Markup, html};

use crate::{
    console::{
        page::Page,
        parts::{Action, Confirmation},
    },
    domain::turns::{State, Turn},
    operations::{ForkSession, ListTurns, Refusal},
};

/// Turns before this one among which the last that is done is looked for.
const MAX_EARLIER: i64 = 20;

/// The button that begins another conversation after this turn or before it. Nothing for a turn that offers neither.
pub(super) async fn form(page: &Page, turn: &Turn) -> Result<Markup, Refusal> {
    let places = places(page, turn).await?;
    let Some((first, _)) = places.first() else { return Ok(html! {}) };
    let given = turn.session_id.to_string();
    let fields = [("id", given.as_str())];
    let confirmation = Confirmation {
        action: Action::of::<ForkSession>("Fork", "fork", &fields, "/sessions/{id}"),
        id: "confirm-fork",
        heading: "Fork this conversation",
        consequences: html! { p { "A new instance of the agent begins with the messages up to this place. Tasks of that instance continue it, and this conversation does not change." } },
        fields: html! {
            div.field { label for="fork-turn" { "Begins" } select #fork-turn name="turn" data-flag="--at" { @for (number, words) in &places { option value=(number) { (words) } } } }
            div.field { label for="fork-instance" { "Name of the new instance; empty for the next free number" } input #fork-instance name="instance" data-flag="--as" maxlength="40"; }
        },
        command: format!("dalsegno session fork {given} --at {first}"),
    };
    Ok(confirmation.button(&page.view, &page.caller))
}

/// Lists the places at which the conversation can be forked, each with the last turn of the fork. A fork begins after a turn that is done: turns
/// that failed are turns, too.
async fn places(page: &Page, turn: &Turn) -> Result<Vec<(i32, String)>, Refusal> {
    let after = (turn.state == State::Done).then(|| (turn.number, "after this turn".to_owned()));
    let list =
        ListTurns { id: turn.session_id, cursor: Some(turn.number), limit: Some(MAX_EARLIER) };
    let earlier = page.caller.run(list).await?.items;
    let done = earlier.iter().map(|listed| &listed.turn).find(|it| it.state == State::Done);
    let before = done.map(|it| (it.number, format!("before this turn, after turn {}", it.number)));
    Ok(after.into_iter().chain(before).collect())
}
