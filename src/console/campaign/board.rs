//! The board with its newest post first, below the box for a new one.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{Action, empty, rendered, sigil, url_text},
    },
    domain::{
        campaigns::Status,
        posts::{Origin, Post},
    },
    operations::{AddPost, ListPosts, PostOrder, Refusal},
};

/// Posts of a page. Earlier ones come on demand.
const PAGE: i64 = 20;
/// Longest text of a post in the page.
const TEXT_MAX_CHARS: usize = 3_000;

pub(super) async fn show(
    page: &Page,
    campaign: Uuid,
    cursor: &str,
    status: Status,
) -> Result<Markup, Refusal> {
    let list = ListPosts {
        id: campaign,
        viewer: None,
        order: Some(PostOrder::Newest),
        cursor: cursor.parse().ok(),
        limit: Some(PAGE),
    };
    let listing = page.caller.run(list).await?;
    let here = format!("/campaigns/{campaign}");
    Ok(html! {
        div.board {
            @if status != Status::Closed && cursor.is_empty() { (compose(page, campaign, &here)) }
            @if listing.items.is_empty() {
                (empty("The board is empty. A post that mentions an agent as @name gives it a task.", &format!("dalsegno board post --campaign {campaign} \"@planner Plan the parts.\"")))
            }
            @else { p."small soft" { @if cursor.is_empty() { "Newest first" } @else { a href=(here) { "Back to the newest posts" } } } }
            @for post in &listing.items { (entry(page, post, &listing.items)) }
            @if let Some(cursor) = &listing.next { (earlier(&format!("{here}?cursor={}", url_text(cursor)))) }
            @if listing.next.is_some() || !cursor.is_empty() { p.small { a href={ (here) "?part=archive" } { "Archive of the board" } } }
        }
    })
}

/// A link to earlier posts. With a script, they take its place.
fn earlier(target: &str) -> Markup {
    html! {
        p.pager #earlier {
            a."btn slim" href=(target) hx-get=(target) hx-target="#earlier" hx-select="#earlier, .board > .post" hx-swap="outerHTML show:none" { "Show earlier posts" }
        }
    }
}

fn entry(page: &Page, post: &Post, listed: &[Post]) -> Markup {
    let is_person = post.origin == Origin::Operator;
    let parent = post.reply_to.and_then(|id| listed.iter().find(|it| it.id == id));
    html! {
        article.post id={ "p" (post.seq) } data-at=(post.posted_at.to_rfc3339()) {
            (sigil(&post.sender, is_person))
            div {
                header {
                    b { bdi { (post.sender) } }
                    @if !post.audience.is_empty() { span.faint { "to " @for name in &post.audience { span.mention { "@" bdi { (name) } } " " } } }
                    @match (parent, post.reply_to) {
                        (Some(parent), _) => span.faint { "in reply to " a href={ "#p" (parent.seq) } { "#" (parent.seq) } },
                        (None, Some(_)) => span.faint { "in reply to an earlier post" },
                        (None, None) => {},
                    }
                    span.end { (page.view.time(post.posted_at)) " · " a href={ "#p" (post.seq) } { "#" (post.seq) } }
                }
                (text(post))
                @if let Some(task) = post.task_id { p.small { a href={ "/tasks/" (task) } { "its task" } } }
            }
        }
    }
}

fn text(post: &Post) -> Markup {
    let Some((end, _)) = post.text.char_indices().nth(TEXT_MAX_CHARS) else {
        return rendered(&post.text);
    };
    html! {
        (rendered(&post.text[..end]))
        p."small soft" { "The first " (TEXT_MAX_CHARS) " of " (post.text.chars().count()) " characters; " code { "dalsegno board history" } " prints all." }
    }
}

fn compose(page: &Page, campaign: Uuid, here: &str) -> Markup {
    let given = campaign.to_string();
    let fields = [("id", given.as_str())];
    let action = Action::of::<AddPost>("Post", "", &fields, here);
    if !action.is_allowed(&page.caller) {
        return html! {};
    }
    let body = html! {
        label.sr for="say" { "Post on the board" }
        textarea #say name="text" required placeholder="Write to the campaign. @name gives that agent a task." {}
        div.under { span { "Each agent that is mentioned gets a task." } button."btn primary" { "Post" } }
    };
    html! { div.compose { (action.form(&page.view, &body)) } }
}
