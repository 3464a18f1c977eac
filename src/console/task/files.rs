//! The output files of a task, and their downloads.

use axum::{extract::Path, response::IntoResponse as _};
use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::{Page, PageResult},
        parts::{counted, section, url_text, wide},
    },
    domain::{task_files::TaskFile, tasks::Detail},
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
            thead { tr { th { "File" } th."num" { "Bytes" } th { "Type" } th."num" { "Turn" } } }
            tbody { @for file in &listed { (row(detail.task.id, file)) } }
        }
    };
    let body = wide("Output files", &table);
    let end = html! { (counted(n_stored, "file", "files")) };
    Ok(html! { div #files { (section("Output files", &end, &body)) } })
}

fn row(task_id: Uuid, file: &TaskFile) -> Markup {
    html! {
        tr {
            @match &file.problem {
                Some(problem) => {
                    td { bdi { (file.name) } }
                    td colspan="2" { "Not stored: " (problem) }
                }
                None => {
                    td { a href={ "/tasks/" (task_id) "/files/" (url_text(&file.name)) } download { bdi { (file.name) } } }
                    td."num" { (file.n_bytes.unwrap_or_default()) }
                    td { (file.media_type.as_deref().unwrap_or_default()) }
                }
            }
            td."num" { (file.turn) }
        }
    }
}

/// Serves a file as a download.
pub(in crate::console) async fn download(
    Path((id, name)): Path<(Uuid, String)>,
    page: Page,
) -> PageResult {
    let file = page.caller.download(DownloadTaskFile { id, name }).await?;
    Ok(download_response(file).into_response())
}
