//! The files of `dalsegno task add`: from the disk, and from another task.

use std::{fs, path::Path};

use anyhow::{Context as _, anyhow};

use crate::{
    cli::{Failure, server::Server},
    domain::{ids::PartialId, task_files::attachments::NewAttachment},
    operations::Noun,
};

/// A file of another task.
#[derive(Debug, Clone)]
pub(super) struct FileReference {
    task: PartialId,
    file: String,
}

/// Longest file that is read. No setting allows more.
const MAX_BYTES: u64 = 256_000_000;

/// Parses a reference such as `0193/report.pdf`.
pub(super) fn parse_reference(text: &str) -> Result<FileReference, String> {
    let (task, file) = text
        .split_once('/')
        .filter(|(_, file)| !file.is_empty())
        .ok_or("use the id of a task and the name of a file, such as 0193/report.pdf")?;
    let task = task.parse().map_err(|error| format!("{error}"))?;
    Ok(FileReference { task, file: file.to_owned() })
}

/// Reads the files, and finds the tasks of the references.
pub(super) async fn read(
    paths: &[impl AsRef<Path>],
    references: &[FileReference],
    server: &Server,
) -> Result<Vec<NewAttachment>, Failure> {
    let mut attachments = Vec::with_capacity(paths.len() + references.len());
    for path in paths {
        attachments.push(read_file(path.as_ref()).map_err(Failure::failed)?);
    }
    for FileReference { task, file } in references {
        let task = Some(server.id(Noun::Task, task).await?);
        let file = Some(file.clone());
        attachments.push(NewAttachment { name: None, content: None, media_type: None, task, file });
    }
    Ok(attachments)
}

fn read_file(path: &Path) -> anyhow::Result<NewAttachment> {
    let words = || format!("cannot attach {}", path.display());
    let metadata = fs::metadata(path).with_context(words)?;
    if !metadata.is_file() {
        return Err(anyhow!("{} is not a file: attach files one by one", path.display()));
    }
    if metadata.len() > MAX_BYTES {
        return Err(anyhow!(
            "{} has {} bytes: an attachment has at most {MAX_BYTES}, and tasks.max_attachment_bytes may allow less",
            path.display(),
            metadata.len()
        ));
    }
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| anyhow!("the name of {} is not valid UTF-8", path.display()))?;
    Ok(NewAttachment::upload(name, fs::read(path).with_context(words)?))
}
