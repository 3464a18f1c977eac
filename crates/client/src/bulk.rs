//! Many tasks, in requests of a size that the service accepts.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Error, NewTask, TaskLink};

/// Tasks of one request. The service accepts ten times as many; smaller requests lock fewer conversations at once.
pub(super) const BATCH: usize = 1_000;

/// One of many added tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct BulkItem {
    pub id: Uuid,
    /// False if an earlier call with its idempotency key created it.
    pub created: bool,
}

#[derive(Deserialize)]
pub(super) struct BulkAnswer {
    pub(super) items: Vec<BulkItem>,
}

/// A task in a request with many of them.
#[derive(Serialize)]
pub(super) struct KeyedTask<'a> {
    #[serde(flatten)]
    task: NewTask<'a>,
    idempotency_key: &'a str,
}

/// Returns the keys of the tasks: their own, or the prefix and their number.
pub(super) fn keys(tasks: &[NewTask<'_>], prefix: &str) -> Vec<String> {
    let numbered = tasks.iter().zip(1..);
    let key = |(task, number): (&NewTask<'_>, u64)| match task.idempotency_key {
        Some(own) => own.to_owned(),
        None => format!("{prefix}/{number}"),
    };
    numbered.map(key).collect()
}

/// Returns the links of each task. An index becomes a key, because the earlier task may be in an earlier request.
pub(super) fn links<'a>(
    tasks: &[NewTask<'a>],
    keys: &'a [String],
) -> Result<Vec<Vec<TaskLink<'a>>>, Error> {
    let mut links = Vec::with_capacity(tasks.len());
    for (number, task) in tasks.iter().enumerate() {
        let by_key = |link: &TaskLink<'a>| match *link {
            TaskLink::Item(item) if item < number => Ok(TaskLink::Key(keys[item].as_str())),
            TaskLink::Item(item) => Err(Error::Link { task: number, item }),
            other => Ok(other),
        };
        let of_task: Result<Vec<TaskLink<'a>>, Error> =
            task.depends_on.iter().map(by_key).collect();
        links.push(of_task?);
    }
    Ok(links)
}

/// Returns the tasks with their keys and links.
pub(super) fn keyed<'a>(
    tasks: &'a [NewTask<'a>],
    keys: &'a [String],
    links: &'a [Vec<TaskLink<'a>>],
) -> Vec<KeyedTask<'a>> {
    let parts = tasks.iter().zip(keys).zip(links);
    let keyed = parts.map(|((task, key), links)| KeyedTask {
        task: NewTask { depends_on: links, ..*task },
        idempotency_key: key,
    });
    keyed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_becomes_the_key_of_its_task_and_has_to_come_before() {
        let after = [TaskLink::Item(0), TaskLink::Item(1), TaskLink::Task(Uuid::nil())];
        let tasks = [
            NewTask { idempotency_key: Some("own"), ..NewTask::of("copywriter", "a") },
            NewTask::of("copywriter", "b"),
            NewTask { depends_on: &after, ..NewTask::of("copywriter", "c") },
        ];
        let keys = keys(&tasks, "import");
        assert_eq!(keys, ["own", "import/2", "import/3"]);
        let links = links(&tasks, &keys).unwrap();
        assert!(links[0].is_empty() && links[1].is_empty(), "{links:?}");
        assert_eq!(links[2], [TaskLink::Key("own"), TaskLink::Key("import/2"), after[2]]);
        let keyed = serde_json::to_value(keyed(&tasks, &keys, &links)).unwrap();
        assert_eq!(keyed[2]["idempotency_key"], "import/3");
        let shown = serde_json::json!([
            { "key": "own" }, { "key": "import/2" }, "00000000-0000-0000-0000-000000000000"
        ]);
        assert_eq!(keyed[2]["depends_on"], shown);

        let itself = [TaskLink::Item(1)];
        let wrong = [tasks[0], NewTask { depends_on: &itself, ..tasks[1] }];
        let error = super::links(&wrong, &keys).unwrap_err();
        assert!(matches!(error, Error::Link { task: 1, item: 1 }), "{error:?}");
    }
}
