//! The frame of each page: rail, bar, path, and the sheets for keys and search.

use axum::{
    http::{StatusCode, header::SET_COOKIE},
    response::{Html, IntoResponse as _, Response},
};
use maud::{DOCTYPE, Markup, html};

use super::{
    assets, navigation,
    page::{DONE, Done, Page, Theme},
    parts::{Tone, icon, title},
};
use crate::{
    domain::campaigns::{Campaign, Status},
    operations::{ListCampaigns, Refusal},
};

/// Campaigns in the rail.
const MAX_CAMPAIGNS: usize = 6;
/// Newest campaigns that are read for it: those of evals, which may make one for each run, are left out.
const READ_CAMPAIGNS: i64 = 60;

const KEYS: &[(&str, &str)] = &[
    ("Find an id, a name or an action", "Ctrl K"),
    ("Show these keys", "?"),
    ("Go to the overview", "g o"),
    ("Go to the work of the queue", "g w"),
    ("Go to the campaigns", "g c"),
    ("Go to the tasks", "g t"),
    ("Go to the sessions", "g s"),
    ("Next, previous row", "j k"),
    ("Open the row", "Enter"),
    ("Show new items", "n"),
    ("Select the row", "x"),
    ("Go to the explanation", "e"),
    ("Write a post", "r"),
    ("Previous, next attempt or turn", "[ ]"),
    ("Copy the id", "y"),
    ("Change the theme", "t"),
    ("Back to the list", "u"),
    ("Close", "Esc"),
];

/// Target, icon and name of the most used pages.
const THUMBS: &[(&str, &str, &str)] = &[
    ("/", "overview", "Overview"),
    ("/work", "work", "Work"),
    ("/tasks", "task", "Tasks"),
    ("/sessions", "talk", "Sessions"),
];

/// The content of a page.
pub(super) struct Content<'a> {
    pub(super) title: &'a str,
    /// The links above the heading.
    pub(super) path: Markup,
    pub(super) body: Markup,
    /// Ids whose events the page announces, or `all`; empty for none.
    pub(super) watch: String,
}

/// The icon of the tab. A script changes it while the page is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Favicon {
    Calm,
    /// Something needs a person.
    Attention,
}

impl Favicon {
    fn path(self) -> String {
        assets::path(match self {
            Self::Calm => "favicon.svg",
            Self::Attention => "favicon-attention.svg",
        })
    }
}

impl Page {
    /// Renders the page with its frame.
    pub(super) async fn respond(&self, content: Content<'_>) -> Result<Response, Refusal> {
        self.respond_with(content, Favicon::Calm).await
    }

    /// As [`Self::respond`], with an icon that is right before a script has asked.
    pub(super) async fn respond_with(
        &self,
        content: Content<'_>,
        favicon: Favicon,
    ) -> Result<Response, Refusal> {
        let list =
            ListCampaigns { tags: None, metadata: None, cursor: None, limit: Some(READ_CAMPAIGNS) };
        let campaigns = self.caller.run_if_allowed(list).await?;
        let mut campaigns = campaigns.map(|listing| listing.items).unwrap_or_default();
        campaigns.retain(|campaign| !campaign.is_erased && !campaign.is_of_eval());
        campaigns.truncate(MAX_CAMPAIGNS);
        let body = html! {
            a.skip href="#main" { "Skip to the content" }
            header.bar {
                (brand())
                (self.thumbs())
                button.btn.quiet popovertarget="find" { (icon("search")) span.sr { "Find" } }
                button.btn.quiet popovertarget="rail" { (icon("menu")) span.sr { "Menu" } }
            }
            div.shell {
                (self.rail(&campaigns))
                main.main #main tabindex="-1" data-watch=(content.watch) data-feed=[self.caller.newest_event()] data-zone=(self.view.zone()) {
                    nav.crumbs aria-label="Path" { (content.path) }
                    @if let Some(done) = self.done { p."notice done" role="status" { (icon("done")) "Done: " (describe_done(done)) "." } }
                    div #banner role="status" {}
                    div.outcome #outcome role="alert" {}
                    (content.body)
                }
            }
            (keys())
            (find())
            (hatch())
        };
        let page = Html(document(content.title, self.theme, favicon, &body).into_string());
        let forget = self.done.map(|_| [(SET_COOKIE, format!("{DONE}=; Path=/; Max-Age=0"))]);
        Ok((forget, page).into_response())
    }

    /// Links to the most used pages, at the lower edge of phones.
    fn thumbs(&self) -> Markup {
        let path = self.target.split('?').next().unwrap_or_default();
        html! {
            nav.thumbs aria-label="Most used pages" {
                @for (target, name, words) in THUMBS {
                    a."btn quiet" href=(target) aria-current=[(path == *target).then_some("page")] { (icon(name)) (words) }
                }
            }
        }
    }

    fn rail(&self, campaigns: &[Campaign]) -> Markup {
        let path = self.target.split('?').next().unwrap_or_default();
        html! {
            nav.rail #rail popover="auto" aria-label="Main" {
                (brand())
                button.find popovertarget="find" { (icon("search")) "Find or do" kbd { "Ctrl K" } }
                (navigation::work(self))
                div {
                    h2 { "Campaigns" }
                    ul {
                        @for campaign in campaigns {
                            @let target = format!("/campaigns/{}", campaign.id);
                            @let tone = campaign_tone(campaign.status);
                            li class=(tone.class()) {
                                a href=(target) aria-current=[(path == target).then_some("page")] {
                                    (icon(tone.icon())) span.clip { bdi { (campaign.name) } }
                                    @if campaign.status != Status::Active { span.sr { (campaign_word(campaign.status)) } }
                                }
                            }
                        }
                        li { a href="/campaigns" aria-current=[(path == "/campaigns").then_some("page")] { (icon("right")) span.clip { "All campaigns" } } }
                    }
                }
                div {
                    h2 { "Installation" }
                    (navigation::installation(self))
                }
                div.foot {
                    div.feed-line #feed-line hidden { (icon("live")) span { "Live" } }
                    @if self.caller.sign_in().is_some() {
                        form method="post" action="/sign-out" {
                            (self.view.token())
                            button.btn.quiet.slim { (icon("sign-out")) "Sign out " bdi { (self.caller.name()) } }
                        }
                    }
                    div {
                        button.btn.quiet.slim data-theme-switch hidden { (icon("theme")) "Theme" }
                        button.btn.quiet.slim popovertarget="keys" { (icon("keyboard")) "Keys" }
                    }
                }
            }
        }
    }
}

/// Renders a document around its body.
pub(super) fn document(
    name: &str,
    theme: Option<Theme>,
    favicon: Favicon,
    body: &Markup,
) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme.map(Theme::as_str)] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="htmx-config" content=(HTMX);
                title { (title(name)) " · Dalsegno" }
                link rel="icon" href=(favicon.path()) data-calm=(Favicon::Calm.path()) data-attention=(Favicon::Attention.path());
                link rel="stylesheet" href=(assets::path("style.css"));
                script defer src=(assets::path("htmx.min.js")) {}
                script type="module" src=(assets::path("console.js")) {}
            }
            body { (body) }
        }
    }
}

/// htmx adds no styles and evaluates no text. Errors are shown as a whole in the outcome of the page: they lack the part that a request may
/// select, and an empty selection would remove the control.
const HTMX: &str = r##"{"includeIndicatorStyles":false,"allowEval":false,"selfRequestsOnly":true,"historyEnabled":false,"responseHandling":[{"code":"204","swap":false},{"code":"[23]..","swap":true},{"code":"[45]..","swap":true,"target":"#outcome","select":"unset","swapOverride":"innerHTML"}]}"##;

/// Renders a page without a rail, for callers who are unknown.
pub(super) fn bare(
    status: StatusCode,
    name: &str,
    theme: Option<Theme>,
    body: &Markup,
) -> Response {
    let body = html! { div.sign-in { main #main { (brand()) (body) } } };
    (status, Html(document(name, theme, Favicon::Calm, &body).into_string())).into_response()
}

pub(super) fn campaign_tone(status: Status) -> Tone {
    match status {
        Status::Active => Tone::Running,
        Status::Paused => Tone::Paused,
        Status::Closed => Tone::Done,
    }
}

pub(super) fn campaign_word(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Paused => "paused",
        Status::Closed => "closed",
    }
}

/// Verbs of operations, with the words for what they have done.
const VERBS: [(&str, &str); 32] = [
    ("add", "is added"),
    ("cancel", "is cancelled"),
    ("change", "is changed"),
    ("close", "is closed"),
    ("compact", "is being compacted"),
    ("create", "is created"),
    ("disable", "is disabled"),
    ("edit", "is changed"),
    ("enable", "is enabled"),
    ("end", "is ended"),
    ("erase", "is being erased"),
    ("forget", "is forgotten"),
    ("fork", "is forked"),
    ("hold", "is held"),
    ("import", "is imported"),
    ("interrupt", "is being interrupted"),
    ("patch", "is changed"),
    ("pause", "is paused"),
    ("publish", "is published"),
    ("put", "is stored"),
    ("release", "is released"),
    ("remove", "is removed"),
    ("replay", "is sent again"),
    ("reset", "is reset"),
    ("resume", "is resumed"),
    ("retry", "is queued again"),
    ("revoke", "is revoked"),
    ("rotate", "is renewed"),
    ("set", "is set"),
    ("start", "is started"),
    ("state", "is stated"),
    ("test", "is being tested"),
];

/// Says what an operation has done, with the number of things if there is one.
fn describe_done(Done { operation, count }: Done) -> String {
    match (operation, count) {
        ("replay_webhook", Some(0)) => {
            "all deliveries since that time have arrived or wait for their first attempt".to_owned()
        }
        ("replay_webhook", Some(1)) => "1 delivery is sent again".to_owned(),
        ("replay_webhook", Some(n)) => format!("{n} deliveries are sent again"),
        _ => done_words(operation),
    }
}

/// Says what an operation has done: `the task is cancelled`.
fn done_words(operation: &str) -> String {
    match operation {
        "uncompact_session" => return "the compaction is undone".to_owned(),
        "compact_session" => return "the compaction is requested".to_owned(),
        "rerun_turn" => return "the reruns are requested".to_owned(),
        "run_cleanup" => return "the cleanup is requested".to_owned(),
        // Of a job that has not started, this is the first run.
        "retry_job" => return "the job may run now".to_owned(),
        "run_schedule" => return "the schedule runs now".to_owned(),
        "reset_agents" => return "the agents are reset".to_owned(),
        "pause_agent_everywhere" => return "the agent is paused in all campaigns".to_owned(),
        "resume_agent_everywhere" => return "the agent is resumed in all campaigns".to_owned(),
        _ => {}
    }
    let (verb, noun) = operation.split_once('_').unwrap_or((operation, ""));
    let noun = noun.replace('_', " ");
    match VERBS.iter().find(|(known, _)| *known == verb) {
        Some((_, words)) => format!("the {noun} {words}"),
        None => format!("{verb} {noun}"),
    }
}

fn brand() -> Markup {
    html! { a.brand href="/" { (icon("segno")) "Dalsegno" } }
}

fn keys() -> Markup {
    html! {
        div.sheet #keys popover="auto" {
            h2 { "Keys" }
            ul.keys {
                @for (words, keys) in KEYS {
                    li { (words) span { @for key in keys.split(' ') { kbd { (key) } " " } } }
                }
            }
        }
    }
}

fn find() -> Markup {
    html! {
        form.sheet #find popover="auto" action="/find" role="search" {
            label.sr for="q" { "Find an id, a name or a page" }
            input #q name="q" type="search" placeholder="An id, a name, words of a prompt, or a page" autocomplete="off" autofocus
                hx-get="/find" hx-trigger="input changed delay:150ms, focus once" hx-target="#found";
            ul."rows found" #page-actions {}
            div #found {}
        }
    }
}

/// The pattern of hatched areas in charts.
fn hatch() -> Markup {
    html! {
        svg.defs aria-hidden="true" {
            defs {
                pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    line.hatch-line x1="0" x2="0" y1="0" y2="5" {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_says_what_was_done() {
        assert_eq!(done_words("uncompact_session"), "the compaction is undone");
        assert_eq!(done_words("change_task_budget"), "the task budget is changed");
        assert_eq!(done_words("retry_job"), "the job may run now");
        assert_eq!(done_words("state_fact"), "the fact is stated");
        assert_eq!(done_words("hand_out"), "hand out");
        let replay = |count| describe_done(Done { operation: "replay_webhook", count });
        assert_eq!(replay(Some(1)), "1 delivery is sent again");
        assert_eq!(replay(Some(12)), "12 deliveries are sent again");
        assert_eq!(replay(None), "the webhook is sent again");
    }
}
