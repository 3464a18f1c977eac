//! The form that forks a conversation at a turn.

use maud::{Markup, html};

use crate::{
    console::{
        page::Page,
        parts::{Action, Confirmation},
    },
    domain::turns::{State, Turn},
    operations::ForkSession,
};

/// The button that begins another conversation after this turn or before it. Nothing for a turn that offers neither.
pub(super) fn form(page: &Page, turn: &Turn) -> Markup {
    let places = places(turn);
    let Some((first, _)) = places.first() else { return html! {} };
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
    confirmation.button(&page.view, &page.caller)
}

/// Lists the places at which a turn can be forked, each with the last turn of the fork.
fn places(turn: &Turn) -> Vec<(i32, String)> {
    let number = turn.number;
    let after = (turn.state == State::Done).then(|| (number, "after this turn".to_owned()));
    let before = number - 1;
    let before = (before > 0).then(|| (before, format!("before this turn, after turn {before}")));
    after.into_iter().chain(before).collect()
}
