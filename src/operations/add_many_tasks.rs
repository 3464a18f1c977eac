//! Adds many tasks in one transaction, all or none. A refusal points at each invalid task.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{
    BAD_KEY, Call, FieldError, Fields, Operation, Refusal, Spec, Success,
    add_task::NAMES_ITS_CALLER, flows::flow_templates, keyed_calls,
};
use crate::domain::{
    amount, campaigns,
    class::{BAD_ARGUMENT, BAD_VALUE, Class, Classify, Kind, QUEUE_FULL},
    flows::{self, Templates},
    keys::Scope,
    tasks::{self, BAD_ITEMS, BadLine, BulkError, BulkTask, Error, Line, MAX_TASKS, New},
    text::count,
};

/// Longest key of a request: [`keyed_calls::MAX_KEY_CHARS`] less `/10000`, which its items add.
pub(super) const MAX_PREFIX_CHARS: u8 = 189;
/// Most invalid tasks that a refusal lists.
pub(super) const MAX_WRONG: usize = 100;
const NO_TASKS: Class = Class::of(Kind::Invalid, "no_tasks");
const TOO_MANY_TASKS: Class = Class::of(Kind::TooLarge, "too_many_tasks");

/// Adds up to 10,000 tasks in one transaction: all or none.
///
/// The body is a JSON array, or one object per line (NDJSON). With an Idempotency-Key the same request can be sent again: a task
/// without an idempotency_key of its own gets that key and its number in the body, such as `import/1` for the first. Where tasks are
/// refused, `errors` points at each of them, up to a hundred. Idempotency keys and predecessors are looked up when everything else is
/// right.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddManyTasks {
    /// The campaign
    pub id: Uuid,
    pub tasks: Vec<Line>,
    /// Tasks of the body that are not among `tasks`, by their places.
    #[serde(skip)]
    pub unreadable: BTreeMap<usize, FieldError>,
}

/// In the order of the request.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AddedMany)]
pub struct ManyAddedTasks {
    /// Number of new tasks.
    pub created: usize,
    pub items: Vec<BulkTask>,
}

impl Operation for AddManyTasks {
    const SPEC: Spec = Spec::change("add_many_tasks", "/v1/campaigns/{id}/tasks/bulk", "task add")
        .tag("tasks")
        .needs(&[Scope::Enqueue])
        .answers(Success::Created)
        .takes_items("tasks")
        .keyed(MAX_PREFIX_CHARS)
        .unaudited(NAMES_ITS_CALLER)
        .refuses(&[
            campaigns::Error::UNKNOWN,
            campaigns::Error::CLOSED,
            amount::Refusal::CLASS,
            Error::KEY_TAKEN,
            TOO_MANY_TASKS,
            BAD_ITEMS,
            BAD_KEY,
            NO_TASKS,
            BAD_ARGUMENT,
            BAD_VALUE,
            QUEUE_FULL,
        ]);
    type Output = ManyAddedTasks;

    async fn run(mut self, call: &Call) -> Result<ManyAddedTasks, Refusal> {
        if let Some(prefix) = &call.idempotency_key {
            keyed_calls::check(prefix, MAX_PREFIX_CHARS)?;
            for (number, line) in (1..).zip(&mut self.tasks) {
                line.idempotency_key.get_or_insert_with(|| format!("{prefix}/{number}"));
            }
        }
        let (catalogue, added_by) = (call.catalogue()?, call.actor.label());
        let only_of = call.reach.only_of();
        let (config, mut wrong) = (&call.config.tasks, self.unreadable);
        let n_tasks = self.tasks.len() + wrong.len();
        let places: Vec<usize> = (0..n_tasks).filter(|at| !wrong.contains_key(at)).collect();
        let mut news: Vec<New<'_>> = Vec::with_capacity(self.tasks.len());
        let names_templates = self.tasks.iter().any(|line| line.flow_templates.is_some());
        let templates = match names_templates {
            true => flow_templates(call).await?,
            false => Templates::default(),
        };
        for (place, line) in places.into_iter().zip(&self.tasks) {
            let names = line.flow_templates.as_deref().unwrap_or_default();
            if let Err(error) = flows::check_names(&templates, names) {
                wrong.insert(place, of_item(&error, format!("/{place}/flow_templates")));
                continue;
            }
            let new = line
                .to_new_task(self.id, &catalogue, &added_by, only_of)
                .map_err(|error| of_item(&error, format!("/{place}/{}", error.noun().as_str())))
                .and_then(|new| match tasks::check_new(config, &new) {
                    Ok(()) => Ok(new),
                    Err(error) => Err(of_item(&error, format!("/{place}"))),
                });
            match new {
                Ok(new) => news.push(new),
                Err(error) => _ = wrong.insert(place, error),
            }
        }
        if !wrong.is_empty() {
            return Err(bad_items(wrong.into_values().collect()));
        }
        let room = call.admit(news.len() as u64).await?;
        let mut transaction = call.begin().await?;
        let items = tasks::add_many(&mut transaction, config, self.id, &news, call.now).await;
        let items = items.map_err(|error| refusal_of_tasks(error, |place| format!("/{place}")))?;
        transaction.commit().await?;
        let created = items.iter().filter(|item| item.created).count();
        room.mark_used(created as u64);
        Ok(ManyAddedTasks { created, items })
    }

    fn read(fields: &Fields) -> Result<Self, Refusal> {
        let (tasks, unreadable) = match &fields.items {
            Some(items) if items.are_lines => read_all(lines_of(&items.text)?.into_iter()),
            Some(items) => {
                let Items(items) = serde_json::from_slice(&items.text).map_err(|error| {
                    let detail = format!("the request body is not a valid JSON array: {error}");
                    Refusal::new(Kind::Malformed, "bad_json", detail)
                })?;
                read_all(items.into_iter().map(RawValue::get))
            }
            None => Ok(Default::default()),
        }?;
        Ok(Self { id: fields.id()?, tasks, unreadable })
    }

    fn is_replay(added: &ManyAddedTasks) -> bool {
        added.created == 0
    }
}

/// Builds the refusal of tasks of which some are invalid. `pointer` returns the JSON pointer of the task at an index.
pub(super) fn refusal_of_tasks(error: BulkError, pointer: impl Fn(usize) -> String) -> Refusal {
    match error {
        BulkError::All(error) => error.into(),
        BulkError::Items(wrong) => {
            let wrong = wrong.into_iter().map(|(place, error)| of_item(&error, pointer(place)));
            bad_items(wrong.collect())
        }
    }
}

/// Items of an array, at most one more than allowed. The rest is parsed and dropped.
struct Items<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Items<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of tasks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de>, A::Error> {
        let mut items = Vec::new();
        while items.len() <= MAX_TASKS {
            match seq.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(Items(items)),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Items(items))
    }
}

fn lines_of(body: &[u8]) -> Result<Vec<&str>, Refusal> {
    let text = std::str::from_utf8(body).map_err(|error| {
        let detail = format!("the body is not UTF-8: {error}");
        Refusal::new(Kind::Malformed, "bad_json", detail)
    })?;
    // One line above the limit is enough to refuse; a body of line breaks alone has millions.
    Ok(text.lines().filter(|line| !line.trim().is_empty()).take(MAX_TASKS + 1).collect())
}

/// Parses the tasks. The second part has the unreadable ones by their position.
fn read_all<'a>(
    texts: impl ExactSizeIterator<Item = &'a str>,
) -> Result<(Vec<Line>, BTreeMap<usize, FieldError>), Refusal> {
    match texts.len() {
        0 => {
            let detail = "the body has no tasks: send at least one";
            return Err(Refusal::new(NO_TASKS.kind, NO_TASKS.code, detail));
        }
        n_tasks if n_tasks > MAX_TASKS => {
            let detail = format!(
                "the request has more than {MAX_TASKS} tasks: send at most {MAX_TASKS} at a time"
            );
            return Err(Refusal::new(TOO_MANY_TASKS.kind, TOO_MANY_TASKS.code, detail));
        }
        _ => {}
    }
    let (mut tasks, mut unreadable) = (Vec::with_capacity(texts.len()), BTreeMap::new());
    for (place, text) in texts.enumerate() {
        match Line::read(text) {
            Ok(task) => tasks.push(task),
            Err(BadLine { pointer, detail }) => {
                let (code, pointer) = (Some("bad_field".into()), format!("/{place}{pointer}"));
                unreadable.insert(place, FieldError { code, pointer, detail });
            }
        }
    }
    Ok((tasks, unreadable))
}

fn of_item(error: &impl Classify, pointer: String) -> FieldError {
    FieldError { code: Some(error.class().code.into()), pointer, detail: error.to_string() }
}

fn bad_items(mut wrong: Vec<FieldError>) -> Refusal {
    let tasks = count(wrong.len(), "of the tasks is", "of the tasks are");
    let detail = format!("{tasks} invalid, so none was added: `errors` names them");
    wrong.truncate(MAX_WRONG);
    Refusal { wrong, ..Refusal::new(BAD_ITEMS.kind, BAD_ITEMS.code, detail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_task_beyond_the_limit_is_kept_of_an_oversized_body() {
        let body = format!("[{}0]", "0,".repeat(3 * MAX_TASKS));
        let Items(items) = serde_json::from_str(&body).unwrap();
        assert_eq!(items.len(), MAX_TASKS + 1);
        let ends = "\n".repeat(10) + &"{}\n".repeat(3 * MAX_TASKS);
        assert_eq!(lines_of(ends.as_bytes()).unwrap().len(), MAX_TASKS + 1);
        // The rest is parsed, too: it has to be valid JSON.
        assert!(serde_json::from_str::<Items<'_>>(&body.replace("0]", "x]")).is_err());
    }
}
