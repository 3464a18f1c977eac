//! Markdown of models and people. Raw HTML is shown as text, images as links, and links lead to web pages and mail only.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Renders a text. A text that is too long to be read in a page is cut.
pub(in crate::console) fn rendered(text: &str) -> Markup {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut out = String::with_capacity(text.len() * 5 / 4);
    let mut in_image = 0_usize;
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(tag) => start(&mut out, &tag, &mut in_image),
            Event::End(tag) => end(&mut out, tag, &mut in_image),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => push(&mut out, &text),
            Event::Code(text) => {
                out.push_str("<code>");
                push(&mut out, &text);
                out.push_str("</code>");
            }
            Event::SoftBreak => out.push('\n'),
            Event::HardBreak => out.push_str("<br>"),
            Event::Rule => out.push_str("<hr>"),
            Event::TaskListMarker(is_done) => out.push_str(if is_done { "☑ " } else { "☐ " }),
        }
    }
    html! { div."said prose" dir="auto" { (PreEscaped(out)) } }
}

fn start(out: &mut String, tag: &Tag<'_>, in_image: &mut usize) {
    match tag {
        Tag::Link { dest_url, .. } => open_link(out, dest_url),
        Tag::Image { dest_url, .. } => {
            *in_image += 1;
            open_link(out, dest_url);
            out.push_str("image: ");
        }
        Tag::CodeBlock(CodeBlockKind::Indented | CodeBlockKind::Fenced(_)) => {
            out.push_str("<pre><code>")
        }
        Tag::HtmlBlock => out.push_str("<p>"),
        // A list that goes on after another text keeps its numbers.
        Tag::List(Some(first)) if *first != 1 => {
            out.push_str(&format!("<ol start=\"{first}\">"));
        }
        tag => {
            if let Some(name) = element(&tag.to_end()) {
                out.push('<');
                out.push_str(name);
                out.push('>');
            }
        }
    }
}

fn end(out: &mut String, tag: TagEnd, in_image: &mut usize) {
    match tag {
        TagEnd::Link => out.push_str("</a>"),
        TagEnd::Image => {
            *in_image = in_image.saturating_sub(1);
            out.push_str("</a>");
        }
        TagEnd::CodeBlock => out.push_str("</code></pre>"),
        TagEnd::HtmlBlock => out.push_str("</p>"),
        tag => {
            if let Some(name) = element(&tag) {
                out.push_str("</");
                out.push_str(name);
                out.push('>');
            }
        }
    }
}

/// Returns the element of a tag. Headings begin below those of the page.
fn element(tag: &TagEnd) -> Option<&'static str> {
    Some(match tag {
        TagEnd::Paragraph => "p",
        TagEnd::Heading(HeadingLevel::H1 | HeadingLevel::H2) => "h3",
        TagEnd::Heading(_) => "h4",
        TagEnd::BlockQuote(_) => "blockquote",
        TagEnd::List(true) => "ol",
        TagEnd::List(false) => "ul",
        TagEnd::Item => "li",
        TagEnd::Emphasis => "em",
        TagEnd::Strong => "strong",
        TagEnd::Strikethrough => "s",
        TagEnd::Table => "table",
        TagEnd::TableHead | TagEnd::TableRow => "tr",
        TagEnd::TableCell => "td",
        _ => return None,
    })
}

/// Opens a link. Addresses other than web pages and mail are dropped; their text stays.
fn open_link(out: &mut String, target: &str) {
    let lower = target.trim().to_ascii_lowercase();
    let is_safe = ["https://", "http://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme));
    out.push_str("<a");
    if is_safe {
        out.push_str(" rel=\"noopener noreferrer nofollow\" href=\"");
        push(out, target.trim());
        out.push('"');
    }
    out.push('>');
}

fn push(out: &mut String, text: &str) {
    out.push_str(&html! { (text) }.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_html_and_images_are_text() {
        let shown = rendered("<script>alert(1)</script>\n\na <b onclick=x>b</b> ![pixel](https://evil.example/p.gif)").0;
        for forbidden in ["<script", "<b ", "<img"] {
            assert!(!shown.contains(forbidden), "{shown}");
        }
        assert!(shown.contains("&lt;script&gt;") && shown.contains("image: pixel"), "{shown}");
    }

    #[test]
    fn links_lead_to_the_web_only() {
        let shown = rendered("[a](javascript:alert(1)) [b](https://x.example/?a=\"b) [c](data:text/html,x) [d]( JAVASCRIPT:x)").0;
        assert!(
            !shown.to_lowercase().contains("href=\"javascript") && !shown.contains("href=\"data"),
            "{shown}"
        );
        assert!(shown.contains("href=\"https://x.example/"), "{shown}");
        assert!(!shown.contains("?a=\"b"), "{shown}");
    }

    #[test]
    fn a_list_keeps_its_first_number() {
        let shown = rendered("5. **Safety.**\n6. Tone.\n\ntext\n\n1. one\n").0;
        assert!(shown.contains("<ol start=\"5\"><li><strong>Safety.</strong>"), "{shown}");
        assert!(shown.contains("<ol><li>one"), "{shown}");
    }

    #[test]
    fn a_megabyte_in_one_line_is_rendered() {
        let shown = rendered(&"*a".repeat(500_000)).0;
        assert!(shown.len() >= 1_000_000);
    }
}
