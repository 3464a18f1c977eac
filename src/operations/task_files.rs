//! The files of tasks: attachments and output files.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Download, DownloadedFile, Operation, Refusal, Spec, tasks::READ_OR_ENQUEUE};
use crate::domain::{
    task_files::{self, FileDirection, TaskFile},
    tasks,
};

const TAG: &str = "tasks";

/// Lists the files of a task: its attachments, then the output files that its agent has written, and those that could not be stored.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTaskFiles {
    pub id: Uuid,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskFiles {
    pub items: Vec<TaskFile>,
}

/// Returns a file of a task.
///
/// Its type follows from its content; texts of all kinds are `text/plain`. A `/` in the name is written as `%2F` in the path.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DownloadTaskFile {
    pub id: Uuid,
    /// As it is listed.
    pub name: String,
    /// For an attachment that has the name of an output file. By default the output file.
    #[serde(default)]
    pub direction: Option<FileDirection>,
}

impl Operation for ListTaskFiles {
    const SPEC: Spec = Spec::read("list_task_files", "/v1/tasks/{id}/files", "task files")
        .tag(TAG)
        .needs(READ_OR_ENQUEUE)
        .refuses(&[tasks::Error::UNKNOWN]);
    type Output = TaskFiles;

    async fn run(self, call: &Call) -> Result<TaskFiles, Refusal> {
        tasks::owner(&call.pool, self.id).await?;
        Ok(TaskFiles { items: task_files::list(&call.pool, self.id).await? })
    }
}

impl Download for DownloadTaskFile {
    const SPEC: Spec =
        Spec::read("download_task_file", "/v1/tasks/{id}/files/{name}", "task files")
            .tag(TAG)
            .needs(READ_OR_ENQUEUE)
            .refuses(&[tasks::Error::UNKNOWN, task_files::Error::UNKNOWN]);

    async fn download(self, call: &Call) -> Result<DownloadedFile, Refusal> {
        let Self { id, name, direction } = self;
        tasks::owner(&call.pool, id).await?;
        let task_files::FileContent { media_type, content } =
            task_files::read(&call.pool, id, &name, direction).await?;
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(DownloadedFile { name, media_type, content })
    }
}
