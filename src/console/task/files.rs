//! The files of a task, and their downloads.

use axum::{
    extract::{Path, Query},
    response::IntoResponse as _,
};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    console::{
        page::{Page, PageResult},
        parts::{counted, section, url_text, wide},
    },
    domain::{
        task_files::{FileDirection, TaskFile},
        tasks::Detail,
    },
    http::download_response,
    operations::{DownloadTaskFile, ListTaskFiles, Refusal},
};

/// Shows nothing for a task without files.
pub(super) async fn show(page: &Page, detail: &Detail) -> Result<Markup, Refusal> {
    if detail.files.is_empty() {
        return Ok(html! {});
    }
    let listed = page.caller.run(ListTaskFiles { id: detail.task.id }).await?.items;
    let n_stored = listed.iter().filter(|file| file.problem.is_none()).count();
    let table = html! {
        table {
            thead { tr { th { "" } th { "File" } th."num" { "Bytes" } th { "Type" } th."num" { "Turn" } } }
            tbody { @for file in &listed { (row(detail.task.id, file)) } }
        }
    };
    let body = wide("Files", &table);
    let end = html! { (counted(n_stored, "file", "files")) };
    Ok(html! { div #files { (section("Files", &end, &body)) } })
}

fn row(task_id: Uuid, file: &TaskFile) -> Markup {
    html! {
        tr {
            td."faint" { (direction(file)) }
            @match &file.problem {
                Some(problem) => {
                    td { bdi { (file.name) } }
                    td colspan="2" { "Not stored: " (problem) }
                }
                None => {
                    td { a href={ "/tasks/" (task_id) "/files/" (url_text(&file.name)) "?direction=" (direction(file)) } download { bdi { (file.name) } } }
                    td."num" { (file.n_bytes.unwrap_or_default()) }
                    td { (file.media_type.as_deref().unwrap_or_default()) }
                }
            }
            td."num" { @if let Some(turn) = file.turn { (turn) } }
        }
    }
}

fn direction(file: &TaskFile) -> &'static str {
    file.direction.as_str()
}

/// Selects one of two files of the same name.
#[derive(Debug, Deserialize)]
pub(in crate::console) struct Selection {
    direction: Option<FileDirection>,
}

/// Serves a file as a download.
pub(in crate::console) async fn download(
    Path((id, name)): Path<(Uuid, String)>,
    Query(Selection { direction }): Query<Selection>,
    page: Page,
) -> PageResult {
    let file = page.caller.download(DownloadTaskFile { id, name, direction }).await?;
    Ok(download_response(file).into_response())
}
