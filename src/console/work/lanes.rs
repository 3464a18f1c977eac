//! Lanes: serial sequences of jobs, each as a line of its jobs.

use axum::extract::Query;
use futures_util::future::join_all;
use maud::{Markup, html};
use serde::Deserialize;

use super::{jobs::state_of, tab_bar};
use crate::{
    console::{
        layout::Content,
        names::Names,
        page::{Page, PageResult},
        parts::{
            Action, Confirmation, Tone, coded, counted, empty, next_page, section, shell_word,
            url_text, wide,
        },
    },
    domain::{class::Kind, text::count_read},
    operations::{HoldLane, LaneName, ListLanes, Refusal, ReleaseLane, ShowLane},
    queue::admin::{LaneMember, LaneView},
};

/// Lanes of a page: each costs a read of its members.
const PAGE: i64 = 12;
/// Jobs of a lane that are drawn.
const MAX_DOTS: usize = 20;
/// Distance between two jobs of a lane, in pixels.
const STEP: usize = 16;

#[derive(Debug, Deserialize)]
pub(in crate::console) struct PageQuery {
    #[serde(default)]
    name: String,
    #[serde(default)]
    held: String,
    cursor: Option<String>,
}

pub(in crate::console) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let names = Names::load(&page).await?;
    if !query.name.is_empty() {
        return one(&page, &query.name, &names).await;
    }
    let held = query.held == "true";
    let list = ListLanes { held, cursor: query.cursor.clone(), limit: Some(PAGE) };
    let listing = page.caller.run(list).await?;
    let lanes = load(&page, &listing.items).await?;
    let more = if listing.next.is_some() { "first " } else { "" };
    let end = html! { "one job at a time, the first on the left · " (more) (counted(lanes.len(), "lane", "lanes")) };
    let body = html! {
        div.head { div { h1 { "Lanes" } div.meta { span { "Each conversation is a lane: its tasks run one after the other" } } } }
        (tab_bar(&page, "/work/lanes", "").await?)
        div.filters {
            nav.choice aria-label="Lanes" {
                a href="/work/lanes" aria-current=[(!held).then_some("page")] { "With jobs" }
                a href="/work/lanes?held=true" aria-current=[held.then_some("page")] { "Held" }
            }
        }
        @if lanes.is_empty() {
            @if held { (empty("No lane is held.", "dalsegno lane hold LANE --reason \"legal reads it first\"")) }
            @else { (empty("No lane has a job: no conversation has work.", "dalsegno task add --campaign CAMPAIGN --agent AGENT \"Write part one.\"")) }
        } @else {
            (section("Lanes", &end, &html! { ul."rows lanes" { @for lane in &lanes { (row(lane, &names)) } } }))
        }
        (next_page("/work/lanes", &[("held", &query.held)], listing.next.as_deref()))
    };
    let path = html! { a href="/work" { "Work" } };
    Ok(page.respond(Content { title: "Lanes", path, body, watch: "all".to_owned() }).await?)
}

/// Loads lanes together. One that was removed meanwhile is left out.
async fn load(page: &Page, lanes: &[LaneName]) -> Result<Vec<LaneView>, Refusal> {
    let show = |LaneName(name): &LaneName| page.caller.run(ShowLane { name: name.clone() });
    let mut found = Vec::new();
    for lane in join_all(lanes.iter().map(show)).await {
        match lane {
            Err(refusal) if refusal.kind == Kind::NotFound => {}
            lane => found.push(lane?),
        }
    }
    Ok(found)
}

fn row(lane: &LaneView, names: &Names) -> Markup {
    html! {
        li {
            a.clip href={ "/work/lanes?name=" (url_text(&lane.lane)) } { bdi { (names.lane(&lane.lane)) } }
            (dots(lane))
            div.lane-state { (lane_state(lane)) }
        }
    }
}

/// Says if there are more members than those that are listed.
fn or_more(lane: &LaneView) -> &'static str {
    if lane.is_cut { " or more" } else { "" }
}

fn dots(lane: &LaneView) -> Markup {
    let members = &lane.members;
    let label = count_read(members.len(), lane.is_cut, "job", "jobs");
    html! {
        svg."chart dots" role="img" aria-label=(label) {
            line.staff x1="0" x2="100%" y1="12" y2="12" {}
            @for (place, member) in members.iter().take(MAX_DOTS).enumerate() {
                g class=(tone(&member.state).class()) {
                    circle class=(if matches!(member.state.as_str(), "running" | "dead") { "bar-tone" } else { "ring" }) cx=(10 + place * STEP) cy="12" r="5" {}
                }
            }
            @if members.len() > MAX_DOTS { text x=(10 + MAX_DOTS * STEP) y="16" { "+" (members.len() - MAX_DOTS) @if lane.is_cut { "…" } } }
        }
    }
}

fn lane_state(lane: &LaneView) -> Markup {
    match (&lane.held, lane.members.first()) {
        (Some(reason), _) => Tone::Held.state("held", Some(reason)),
        (None, Some(first)) => {
            // One that is not listed stands in for the first.
            let n_behind = lane.members.len() - usize::from(!lane.is_cut);
            let behind = format!("{n_behind}{} behind it", or_more(lane));
            let why = (n_behind > 0).then_some(behind.as_str());
            let (tone, word) = match first.state.as_str() {
                _ if first.is_paused => (Tone::Paused, "paused"),
                "running" => (Tone::Running, "running"),
                "ready" => (Tone::Queued, "ready"),
                "held" => (Tone::Held, "held"),
                _ => (Tone::Waiting, "waiting"),
            };
            tone.state(word, why)
        }
        (None, None) => Tone::Done.state("empty", None),
    }
}

fn tone(state: &str) -> Tone {
    match state {
        "running" => Tone::Running,
        "held" => Tone::Held,
        "scheduled" => Tone::Waiting,
        _ => Tone::Queued,
    }
}

async fn one(page: &Page, name: &str, names: &Names) -> PageResult {
    let lane = page.caller.run(ShowLane { name: name.to_owned() }).await?;
    let heading = names.lane(name);
    let body = html! {
        div.head {
            div { h1 { bdi { (heading) } } div.meta { (lane_state(&lane)) code.faint { (name) } } }
            (actions(page, &lane))
        }
        @if let Some(reason) = &lane.held {
            section."explain held" #explain tabindex="-1" {
                (super::super::parts::icon("held"))
                div { p.lede { "The lane is held: none of its jobs starts until it is released." } p.next dir="auto" { bdi { (coded(reason)) } @if let Some(at) = lane.held_at { ", since " (page.view.time(at)) } } }
            }
        }
        (dots(&lane))
        @if lane.members.is_empty() { (empty("The lane has no job.", "dalsegno lane ls")) }
        @else { (section("Jobs in order", &html! { (lane.members.len()) (or_more(&lane)) }, &members(page, &lane))) }
    };
    let path = html! { a href="/work" { "Work" } span { "/" } a href="/work/lanes" { "Lanes" } };
    Ok(page.respond(Content { title: &heading, path, body, watch: "all".to_owned() }).await?)
}

fn actions(page: &Page, lane: &LaneView) -> Markup {
    let here = format!("/work/lanes?name={}", url_text(&lane.lane));
    let fields = [("name", lane.lane.as_str())];
    let hold = Confirmation {
        action: Action::of::<HoldLane>("Hold the lane", "held", &fields, &here),
        id: "confirm-hold",
        heading: "Hold this lane",
        consequences: html! { p { "Its running job goes on. None of the others starts until the lane is released." } },
        fields: html! { div.field { label for="reason" { "Reason" } input #reason name="reason" data-flag="--reason" maxlength="300"; } },
        command: format!("dalsegno lane hold {}", shell_word(&lane.lane)),
    };
    let release = Action::of::<ReleaseLane>("Release the lane", "", &fields, &here);
    html! {
        div.actions {
            @if lane.held.is_some() { (release.button(&page.view, &page.caller)) } @else { (hold.button(&page.view, &page.caller)) }
        }
    }
}

fn members(page: &Page, lane: &LaneView) -> Markup {
    let reason = |member: &LaneMember| match (&lane.held, member.state.as_str()) {
        (Some(_), "blocked") => Some("lane_hold"),
        _ if member.is_paused => Some("pause"),
        _ => None,
    };
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Job" } th.num { "Place" } th { "Since, or due" } } }
            tbody {
                @for (place, member) in (1..).zip(&lane.members) {
                    tr {
                        td { (state_of(&member.state, reason(member))) }
                        td { a href={ "/work/jobs/" (member.id) } { (member.kind.replace('_', " ")) " " (member.id) } }
                        td.num { @if member.lane_seq.is_some() { (place) } @else { span.faint { "none yet" } } }
                        td { @if matches!(member.state.as_str(), "ready" | "scheduled") && member.run_at.timestamp() < FAR { (page.view.time(member.run_at)) } }
                    }
                }
            }
        }
    };
    wide("Jobs of the lane", &table)
}

/// A time after which a job waits for a signal, and its time is only a mark.
const FAR: i64 = 250_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(n_members: i64, is_cut: bool) -> LaneView {
        let member = |id| LaneMember {
            id,
            kind: "run_turn".to_owned(),
            state: "ready".to_owned(),
            lane_seq: Some(id),
            run_at: chrono::DateTime::UNIX_EPOCH,
            is_paused: false,
        };
        LaneView {
            lane: "nightly".to_owned(),
            held: None,
            held_at: None,
            on_failure: "continue".to_owned(),
            members: (0..n_members).map(member).collect(),
            is_cut,
        }
    }

    #[test]
    fn a_lane_with_more_jobs_than_are_listed_says_so() {
        let cut = lane(100, true);
        assert!(lane_state(&cut).0.contains("100 or more behind it"));
        let shown = dots(&cut).0;
        assert!(shown.contains("aria-label=\"100 or more jobs\""), "{shown}");
        assert!(shown.contains("+80…<"), "{shown}");
        let whole = lane(100, false);
        assert!(lane_state(&whole).0.contains("99 behind it"));
        assert!(dots(&whole).0.contains("aria-label=\"100 jobs\""));
        assert!(!lane_state(&lane(1, false)).0.contains("behind"));
    }
}
