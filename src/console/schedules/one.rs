//! The page of a schedule: its last runs, and the form for its change.

use axum::extract::Path;
use maud::html;

use super::{
    HERE, actions,
    form::{self, Choices},
    purpose, tone, week,
};
use crate::{
    console::{
        layout::Content,
        names::Names,
        page::{Page, PageResult},
        parts::{facts, plain, section},
    },
    domain::schedules::Source,
    operations::{ScheduleDetail, ShowSchedule},
};

pub(in crate::console) async fn show(Path(name): Path<String>, page: Page) -> PageResult {
    let ScheduleDetail { schedule, last_manual_run } =
        page.caller.run(ShowSchedule { name }).await?;
    let choices = match schedule.source {
        Source::User => {
            let campaign = schedule.payload["campaign_id"].as_str().unwrap_or_default();
            Some(Choices::load(&page, campaign).await?)
        }
        Source::BuiltIn => None,
    };
    let names = Names::load(&page).await?;
    let word = if schedule.paused_at.is_some() { "paused" } else { "active" };
    let rows = facts(&[
        ("When", html! { code { (schedule.cron) } " in " (schedule.time_zone) }),
        ("Next", html! { @if let Some(at) = schedule.next_slot { (page.view.calendar(at)) } }),
        (
            "Last",
            html! { @if let Some(at) = schedule.last_slot { (page.view.calendar(at)) @if let Some(job) = schedule.last_job_id { ", " a href={ "/work/jobs/" (job) } { "job " (job) } } } },
        ),
        (
            "By hand",
            html! { @if let Some(run) = &last_manual_run { (page.view.calendar(run.at)) " by " bdi { (run.actor) } @if let Some(job) = run.job_id { ", " a href={ "/work/jobs/" (job) } { "job " (job) } } } },
        ),
        ("Does", purpose(&schedule, &names)),
        ("Catches up", html! { (schedule.catch_up_secs) " s" }),
        ("Since", page.view.calendar(schedule.created_at)),
    ]);
    let body = html! {
        div.head {
            div { h1 { bdi { (schedule.name) } } div.meta { (tone(&schedule).state(word, schedule.pause_reason.as_deref())) } }
            (actions(&page, 0, &schedule))
        }
        div.cols {
            div.stack {
                (section("Today and the next seven days", &html! { "times of " (page.view.zone()) }, &week::show(&page, std::slice::from_ref(&schedule))))
                @if let Some(prompt) = schedule.payload["prompt"].as_str() { (section("Prompt", &html! {}, &plain(prompt))) }
                @if let Some(choices) = &choices { (form::show(&page, choices, Some(&schedule))) }
            }
            aside."stack side" { (section("Facts", &html! {}, &rows)) }
        }
    };
    let path = html! { a href=(HERE) { "Schedules" } };
    Ok(page.respond(Content { title: &schedule.name, path, body, watch: String::new() }).await?)
}
