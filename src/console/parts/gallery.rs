//! All parts on one page, in debug builds.

use maud::html;

use super::{Share, Tone, agent, empty, facts, rendered, section, share_bar, sigil, sparkline};
use crate::console::{
    layout::Content,
    page::{Page, PageResult},
};

/// A text with everything that must not reach the page as markup.
const HOSTILE: &str =
    "<script>alert(1)</script> \u{202e}reversed\u{202c} ![x](https://evil.example/x.gif) **bold**";

pub(in crate::console) async fn show(page: Page) -> PageResult {
    let view = &page.view;
    let states = html! { ul.rows { @for tone in Tone::ALL { li { (tone.state(tone.class(), Some("the reason"))) " " (tone.badge(tone.class(), None)) } } } };
    let share = |name: &str, value, class| Share {
        name: name.into(),
        value,
        shown: value.to_string(),
        class,
    };
    let shares =
        [share("System", 20.0, "p1"), share("Summary", 30.0, "p2"), share("Free", 50.0, "p7")];
    let body = html! {
        div.head { div { h1 { "Parts" } } }
        div.gallery {
            (section("States", &html! {}, &states))
            (section("Names and ids", &html! {}, &html! { (agent("copywriter", "main")) " " (sigil("Ann", true)) " " (super::id("task", uuid::Uuid::nil())) }))
            (section("Times and amounts", &html! {}, &facts(&[("Time", view.time(view.now)), ("Clock", view.clock(view.now)), ("Amount", html! { (view.money(53_000)) })])))
            (section("Sparkline", &html! { "last hour" }, &sparkline("example", &[1.0, 4.0, 2.0, 5.0, 3.0])))
            (section("Shares", &html! { "100" }, &share_bar("example", &shares, 100.0, Some(85.0))))
            (section("Empty", &html! { "0" }, &empty("No task has been added.", "dalsegno task add --agent copywriter \"Write part one.\"")))
            (section("Text of a model", &html! {}, &rendered(HOSTILE)))
        }
    };
    Ok(page
        .respond(Content {
            title: "Parts",
            path: html! { span { "Gallery" } },
            body,
            watch: String::new(),
        })
        .await?)
}
