//! Forms that run operations. Without a script they answer with a page; with one, an error is shown where the action was.

use maud::{Markup, html};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::{View, icon};
use crate::{
    domain::class::Kind,
    http::pages::PageCaller,
    operations::{Operation, Refusal, Spec},
};

/// Reads a field that may be empty. A text that cannot be read is refused: without it, the form would reach more than it says.
pub(in crate::console) fn optional<T>(
    what: &str,
    text: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Refusal> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let refuse = || {
        let detail = format!("`{text}` is not {what}: correct it, or leave it empty");
        Refusal::new(Kind::Invalid, "bad_field", detail)
    };
    read(text).map(Some).ok_or_else(refuse)
}

/// Reads the id of a campaign, as [`optional`] does.
pub(in crate::console) fn campaign_id(text: &str) -> Result<Option<Uuid>, Refusal> {
    optional("the id of a campaign", text, |text| text.parse().ok())
}

/// Reads the place in a list at which a page begins, as the link to that page has it.
pub(in crate::console) fn place<T: DeserializeOwned>(text: &str) -> Result<Option<T>, Refusal> {
    let read = |text: &str| serde_json::from_value(serde_json::Value::String(text.to_owned())).ok();
    optional("a place in this list", text, read)
}

/// A form whose answer is a page: with a script, its content takes the place of the present one.
pub(in crate::console) fn page_form(view: &View, target: &str, body: &Markup) -> Markup {
    html! {
        form method="post" action=(target) hx-post=(target) hx-target="#main" hx-select="#main" hx-swap="outerHTML show:window:top" {
            (view.token())
            (body)
        }
    }
}

/// A button that runs an operation.
pub(in crate::console) struct Action<'a> {
    spec: Spec,
    words: &'a str,
    icon: &'a str,
    fields: &'a [(&'a str, &'a str)],
    /// The page to go on to. Names in braces are fields of the output.
    then: &'a str,
    class: &'a str,
    takes_files: bool,
}

/// An action with its consequences, which are shown before it runs.
pub(in crate::console) struct Confirmation<'a> {
    pub(in crate::console) action: Action<'a>,
    /// Unique on its page.
    pub(in crate::console) id: &'a str,
    pub(in crate::console) heading: &'a str,
    pub(in crate::console) consequences: Markup,
    /// Further fields. The command follows those with a `data-flag`.
    pub(in crate::console) fields: Markup,
    /// The same as a command.
    pub(in crate::console) command: String,
}

impl<'a> Action<'a> {
    pub(in crate::console) fn of<O: Operation>(
        words: &'a str,
        icon: &'a str,
        fields: &'a [(&'a str, &'a str)],
        then: &'a str,
    ) -> Self {
        Self { spec: O::SPEC, words, icon, fields, then, class: "btn", takes_files: false }
    }

    /// Returns true if the caller may run the operation.
    pub(in crate::console) fn is_allowed(&self, caller: &PageCaller) -> bool {
        caller.may_reach(&self.spec)
    }

    pub(in crate::console) fn class(self, class: &'a str) -> Self {
        Self { class, ..self }
    }

    /// Sends the form with its files. A browser keeps no files when it shows a form again.
    pub(in crate::console) fn with_files(self) -> Self {
        Self { takes_files: true, ..self }
    }

    /// Renders the button, if the caller may run the operation.
    pub(in crate::console) fn button(&self, view: &View, caller: &PageCaller) -> Markup {
        if !self.is_allowed(caller) {
            return html! {};
        }
        html! { (self.form(view, &html! { button class=(self.class) { @if !self.icon.is_empty() { (icon(self.icon)) } (self.words) } })) }
    }

    /// Renders the form around its fields and its button.
    pub(in crate::console) fn form(&self, view: &View, body: &Markup) -> Markup {
        let target = format!("/do/{}", self.spec.id);
        let encoding = self.takes_files.then_some("multipart/form-data");
        html! {
            form method="post" action=(target) enctype=[encoding] hx-encoding=[encoding] hx-post=(target) hx-target="#outcome" {
                (view.token())
                input type="hidden" name="then" value=(self.then);
                @for (name, value) in self.fields { input type="hidden" name=(name) value=(value); }
                (body)
            }
        }
    }
}

impl Confirmation<'_> {
    /// Renders a button, and the sheet that it opens, if the caller may run the operation.
    pub(in crate::console) fn button(&self, view: &View, caller: &PageCaller) -> Markup {
        let action = &self.action;
        if !action.is_allowed(caller) {
            return html! {};
        }
        let form = html! {
            (self.consequences)
            (self.fields)
            div.actions {
                button.btn.primary { (self.heading) }
                button.btn.quiet type="button" popovertarget=(self.id) popovertargetaction="hide" { "Close" }
            }
            pre."code wrap" data-command=(self.command) { (self.command) }
        };
        html! {
            button class=(action.class) popovertarget=(self.id) { @if !action.icon.is_empty() { (icon(action.icon)) } (action.words) "…" }
            div.sheet id=(self.id) popover="auto" {
                h2 { (self.heading) }
                (action.form(view, &form))
            }
        }
    }
}
