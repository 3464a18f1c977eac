//! A file as it was written, with its problems at their lines, or rendered.

use maud::{Markup, html};

use crate::{
    console::parts::{empty, rendered, section},
    domain::files::Problem,
    operations::SourceText,
};

/// Longest text in a page.
const TEXT_MAX_LINES: usize = 4_000;

pub(super) fn show(source: &SourceText, view: &str) -> Markup {
    let file = &source.file;
    let here = format!("/catalogue/{}/{}", file.kind.as_str(), file.name);
    let Some(text) = &source.text else {
        return html! {
            (section("Problems", &html! { (file.problems.len()) }, &problem_list(&file.problems)))
            (empty("The file cannot be read.", "dalsegno agent check"))
        };
    };
    // Problems stand at their lines, so they are seen at once.
    let is_source = view == "source" || (view.is_empty() && !file.problems.is_empty());
    let n_lines = text.lines().count();
    let body = html! {
        div."answer-bar" {
            nav.choice aria-label="View" {
                a href={ (here) "?view=text" } aria-current=[(!is_source).then_some("page")] { "Rendered" }
                a href={ (here) "?view=source" } aria-current=[is_source.then_some("page")] { "Source" }
            }
        }
        @if is_source { (lines(text, &file.problems)) } @else { (parts(text)) }
    };
    let whole: Vec<Problem> =
        file.problems.iter().filter(|it| it.line.is_none()).cloned().collect();
    html! {
        @if !whole.is_empty() { (section("Problems of the whole file", &html! { (whole.len()) }, &problem_list(&whole))) }
        (section("File", &html! { (n_lines) " lines" }, &body))
    }
}

/// Lists problems, each with what to write instead.
pub(super) fn problem_list(problems: &[Problem]) -> Markup {
    html! { ul.rows { @for it in problems { li { (note(it, true)) } } } }
}

fn note(it: &Problem, with_file: bool) -> Markup {
    html! {
        div.problem {
            p { @if with_file { code { bdi { (it.file) } @if let Some(line) = it.line { ":" (line) } } " " } @if let Some(key) = &it.key { b { code { bdi { (key) } } } " " } bdi { (it.message) } }
            p.soft { "Write: " code { bdi { (it.fix) } } }
        }
    }
}

/// Shows numbered lines; a problem stands below its line.
fn lines(text: &str, problems: &[Problem]) -> Markup {
    html! {
        div.source role="group" aria-label="Lines of the file" tabindex="0" dir="ltr" {
            @for (line, number) in text.lines().zip(1..).take(TEXT_MAX_LINES) {
                @let own: Vec<&Problem> = problems.iter().filter(|it| it.line == Some(number)).collect();
                div.line.bad[!own.is_empty()] id={ "L" (number) } { span.n aria-hidden="true" { (number) } code { (line) } }
                @for it in own { (note(it, false)) }
            }
            @let last = text.lines().count();
            @for it in problems.iter().filter(|it| it.line.is_some_and(|line| line > last || line > TEXT_MAX_LINES)) { (note(it, true)) }
        }
    }
}

/// Shows the front matter as it is, and the text below it rendered.
fn parts(text: &str) -> Markup {
    let (front, rest) = split(text);
    html! {
        @if let Some(front) = front { pre."code wrap" tabindex="0" dir="ltr" { (front) } }
        div.after { (rendered(rest)) }
    }
}

/// Splits the front matter from the text below it.
fn split(text: &str) -> (Option<&str>, &str) {
    let Some(inside) = text.strip_prefix("---\n") else { return (None, text) };
    match inside.split_once("\n---") {
        Some((front, rest)) => (Some(front), rest.trim_start_matches('-').trim_start()),
        None => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: Option<usize>) -> Problem {
        Problem {
            file: "a.md".to_owned(),
            line,
            key: Some("model".to_owned()),
            message: "<script> is unknown".to_owned(),
            fix: "model: sim-1".to_owned(),
        }
    }

    #[test]
    fn problems_stand_below_their_lines() {
        let shown = lines("---\nmodel: x\n---\nText", &[problem(Some(2)), problem(Some(99))]).0;
        let (line, note) = (shown.find("id=\"L2\"").unwrap(), shown.find("is unknown").unwrap());
        assert!(line < note && note < shown.find("id=\"L3\"").unwrap(), "{shown}");
        assert_eq!(shown.matches("is unknown").count(), 2, "a line behind the end is shown, too");
        assert!(!shown.contains("<script>"), "{shown}");
    }

    #[test]
    fn the_front_matter_is_split_from_the_text() {
        assert_eq!(split("---\na: b\n---\n\nText"), (Some("a: b"), "Text"));
        assert_eq!(split("Text"), (None, "Text"));
        assert_eq!(split("---\nopen"), (None, "---\nopen"));
    }
}
