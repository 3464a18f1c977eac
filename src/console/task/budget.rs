//! The form for the budget of a task.

use maud::{Markup, html};

use crate::{
    console::{page::Page, parts::Action},
    domain::{
        amount::format_money,
        tasks::{State, Task},
    },
    operations::ChangeTaskBudget,
};

pub(super) fn form(page: &Page, task: &Task) -> Markup {
    let given = task.id.to_string();
    let here = format!("/tasks/{given}");
    let fields = [("id", given.as_str())];
    let change = Action::of::<ChangeTaskBudget>("Set", "", &fields, &here);
    if !change.is_allowed(&page.caller) || !matches!(task.state, State::Queued | State::Running) {
        return html! {};
    }
    let value = task.budget_micros.map(format_money);
    let form = html! {
        div.field { label for="task-limit" { "Limit in " (page.view.currency()) } input #task-limit name="money:micros" inputmode="decimal" pattern="[0-9]+([.,][0-9]{1,6})?" title="An amount such as 12.50" placeholder="none" autocomplete="off" value=[value]; }
        p."small soft after" { "An empty field removes the limit. A task that waits for its budget goes on." }
        div."actions after" { button.btn { "Set" } }
        pre."code wrap after" { "dalsegno task budget " (given) " --money 2.50" }
    };
    html! { details.after { summary { "Change the budget of the task" } (change.form(&page.view, &form)) } }
}
