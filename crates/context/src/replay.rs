//! Rebuilds a call from its manifest: texts by their digests, messages and summaries from their rows.
//!
//! The result is what [`crate::assemble()`] and [`crate::rounds`] returned before the call. A text that was removed since is an
//! error, and so is a row that changed: nothing is guessed.

use std::{collections::HashMap, sync::Arc};

use uuid::Uuid;

use crate::{
    attachments::{self, Treatments},
    compaction::{
        Compaction,
        groups::{self, GroupEntry, RepairedMessages},
    },
    conversation::{
        Rendering, push_placed, push_user, render_compaction, render_entry, render_unsent, user,
    },
    digest::Digest,
    entry::Entry,
    manifest::{Kind, Manifest, Part, PartReason, RENDERING},
    parts::Skill,
    posts::Posts,
    rounds::fence_result,
    system_part,
    transcript::{Attachment, Message, Role, ToolSpec},
    xml::{self, FenceSeed, Scope},
};

/// The rows of a session that a call was assembled from.
#[derive(Debug)]
pub struct Rows<'a> {
    pub seed: &'a FenceSeed,
    /// Stored texts by their digests.
    pub texts: &'a HashMap<Digest, String>,
    /// The summary that the manifest names.
    pub compaction: Option<&'a Compaction>,
    /// The transcript after that summary, in order, without the turns that the manifest leaves out.
    pub entries: &'a [Entry],
    /// The task, and the results that it waited for. An earlier attempt may have stored them anywhere in the transcript.
    pub own: &'a [Entry],
    /// Entries of the call's own turn: the place of each in `entries` is known by its id.
    pub of_turn: &'a [Uuid],
}

/// A call as it was assembled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedCall {
    pub system: String,
    pub messages: Vec<Arc<Message>>,
    pub tools: Vec<Arc<ToolSpec>>,
    /// Text for a provider that keeps the conversation itself.
    pub unheard: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a part of kind `{}` is not stored: it was erased, or could not be stored when the turn ended", kind.as_str())]
    Removed { kind: Kind },
    #[error("a part of kind `{}` differs from what was sent: its rows were changed", kind.as_str())]
    Changed { kind: Kind },
    #[error(
        "the context was stored by a version of Dalsegno whose rendering (number {0}) this one does not know: versions before number {RENDERING} stored no texts; a newer one shows later numbers"
    )]
    Rendering(u32),
}

/// Rebuilds the call.
pub fn replay(manifest: &Manifest, rows: &Rows<'_>) -> Result<ReplayedCall, Error> {
    if manifest.rendering != RENDERING {
        return Err(Error::Rendering(manifest.rendering));
    }
    let mut replay = Replay { rows, own: own_entries(manifest), messages: Vec::new() };
    let repaired = replay.repair_tail(manifest)?;
    replay.check_attachments(manifest)?;
    let treatments = Treatments::of_manifest(manifest);
    let rendering = Rendering { seed: rows.seed, treatments: &treatments };
    let mut blocks = Vec::new();
    let mut system = String::new();
    let mut tools = Vec::new();
    let mut after_turn = Vec::new();
    let mut has_rounds = false;
    for part in &manifest.parts {
        match part.kind {
            kind if kind.is_of_system() => system.push_str(&replay.system_piece(part)?),
            Kind::Tools => tools = replay.tools(part)?,
            Kind::Summary => replay.summary(part)?,
            Kind::Notice if part.why == PartReason::LastCall => {
                after_turn.push(Arc::new(user(replay.turn_block(part)?)));
            }
            Kind::Notice
            | Kind::Statuses
            | Kind::Parameters
            | Kind::Blackboard
            | Kind::ResultSchema => blocks.push(replay.turn_block(part)?),
            Kind::Posts if part.sha256.is_some() => blocks.push(replay.posts(part)?),
            Kind::Results | Kind::Task => blocks.push(replay.own_entry(part)?),
            // The first line of the rounds stands for all of them.
            Kind::Rounds if !has_rounds => {
                has_rounds = true;
                after_turn.splice(..0, replay.rounds(part)?);
            }
            _ => {}
        }
    }
    for placed in &repaired.placed {
        push_placed(&mut replay.messages, placed, rendering);
    }
    let mut turn = user(blocks.join("\n\n"));
    if let Some(task_id) = replay.own.last() {
        let of_task = rows.own.iter().find(|entry| entry.id == *task_id);
        let of_task = of_task.map(Entry::attachments).unwrap_or_default();
        attachments::append_to(&mut turn, (*task_id, of_task), rendering);
    }
    let unheard =
        manifest.heard_to_seq.map(|heard| render_unsent(&repaired, heard, &turn.text, rendering));
    push_user(&mut replay.messages, Arc::new(turn));
    replay.messages.extend(after_turn);
    Ok(ReplayedCall { system, messages: replay.messages, tools, unheard })
}

/// Texts of an agent file that a call is sent with in place of its own.
#[derive(Debug, Clone, Copy)]
pub struct AgentTexts<'a> {
    pub prompt: &'a str,
    pub skills: &'a [Skill<'a>],
}

/// Rebuilds the system text of a call with the prompt and the skills of another agent file. Everything else is as it was sent.
pub fn system_with_agent(
    manifest: &Manifest,
    rows: &Rows<'_>,
    agent: &AgentTexts<'_>,
) -> Result<String, Error> {
    let replay = Replay { rows, own: Vec::new(), messages: Vec::new() };
    let mut system = String::new();
    let mut has_skills = false;
    for part in manifest.parts.iter().filter(|part| part.kind.is_of_system()) {
        match part.kind {
            Kind::AgentPrompt => system.push_str(agent.prompt),
            Kind::Skill => {}
            _ => system.push_str(&replay.system_piece(part)?),
        }
        // The skills follow the first rules, which explain how to read them.
        if part.kind == Kind::FenceRules && !has_skills {
            has_skills = true;
            let fence = rows.seed.fence(Scope::System);
            system.push_str(&system_part::render_skills(agent.skills, &fence));
        }
    }
    Ok(system)
}

/// Returns the text of each part for people: without fences and the space around it. `None` for parts without a text of their own,
/// such as the transcript, and for texts that are not stored any more.
pub fn part_texts(manifest: &Manifest, rows: &Rows<'_>) -> Vec<Option<String>> {
    let replay = Replay { rows, own: own_entries(manifest), messages: Vec::new() };
    let text = |part: &Part| match part.kind {
        Kind::Summary => rows.compaction.map(|compaction| compaction.summary.clone()),
        Kind::Task | Kind::Results => replay.find_own(part).map(|entry| entry.message.text.clone()),
        Kind::Posts => replay.posts(part).ok().map(|posts| xml::without_fence(&posts)),
        Kind::Transcript | Kind::SyntheticResults | Kind::Rounds => None,
        _ => replay.find_text(part).map(|text| xml::without_fence(text).trim().to_owned()),
    };
    manifest.parts.iter().map(text).collect()
}

struct Replay<'a> {
    rows: &'a Rows<'a>,
    /// The task, and the results that it waited for.
    own: Vec<Uuid>,
    messages: Vec<Arc<Message>>,
}

impl<'a> Replay<'a> {
    /// Finds the stored text of a part.
    fn text(&self, part: &Part) -> Result<&'a str, Error> {
        self.find_text(part).ok_or(Error::Removed { kind: part.kind })
    }

    fn find_text(&self, part: &Part) -> Option<&'a str> {
        self.rows.texts.get(part.sha256.as_ref()?).map(String::as_str)
    }

    fn system_piece(&self, part: &Part) -> Result<String, Error> {
        let text = self.text(part)?;
        Ok(match part.kind.is_plain() {
            true => text.to_owned(),
            false => xml::close(text, &self.rows.seed.fence(Scope::System)),
        })
    }

    fn tools(&self, part: &Part) -> Result<Vec<Arc<ToolSpec>>, Error> {
        let tools: Result<Vec<ToolSpec>, _> = serde_json::from_str(self.text(part)?);
        let changed = |_| Error::Changed { kind: part.kind };
        Ok(tools.map_err(changed)?.into_iter().map(Arc::new).collect())
    }

    fn summary(&mut self, part: &Part) -> Result<(), Error> {
        let compaction = self.rows.compaction.ok_or(Error::Removed { kind: part.kind })?;
        let scope = Scope::Summary { generation: compaction.generation };
        let text = render_compaction(compaction, &self.rows.seed.fence(scope));
        check(part, Digest::of(&text))?;
        push_user(&mut self.messages, Arc::new(user(text)));
        Ok(())
    }

    /// Restores the tail of the transcript as it was before the call.
    fn repair_tail(&self, manifest: &Manifest) -> Result<RepairedMessages<'a>, Error> {
        let lines = || manifest.parts.iter().filter(|part| is_of_tail(part));
        let spans = || lines().filter_map(|part| part.span);
        let (Some(from_seq), Some(to_seq)) =
            (spans().map(|span| span.from_seq).min(), spans().map(|span| span.to_seq).max())
        else {
            return Ok(groups::repair(&[], &self.own));
        };
        let entries = self.rows.entries;
        let first = entries.partition_point(|entry| entry.seq < from_seq);
        let end = entries.partition_point(|entry| entry.seq <= to_seq);
        let repaired = groups::repair(&entries[first..end.max(first)], &self.own);
        for part in lines().filter(|part| part.sent) {
            let sent = repaired.placed.iter().filter_map(GroupEntry::entry);
            let count = part.span.and_then(|span| span.count);
            if count.is_some_and(|count| sent.clone().count() < count) {
                return Err(Error::Removed { kind: part.kind });
            }
            check(part, Digest::chain(sent.map(|entry| entry.digest)))?;
        }
        Ok(repaired)
    }

    /// Checks that the files that were sent are stored as they were.
    fn check_attachments(&self, manifest: &Manifest) -> Result<(), Error> {
        for part in manifest.parts.iter().filter(|part| part.kind == Kind::Attachment) {
            let (removed, changed) =
                (Error::Removed { kind: part.kind }, Error::Changed { kind: part.kind });
            let (task_id, position) = attachments::part_place(part).ok_or(changed)?;
            let file = self.find_attachment(task_id, position).ok_or(removed.clone())?;
            check(part, file.digest())?;
            if part.sent && file.content.is_none() {
                return Err(removed);
            }
        }
        Ok(())
    }

    fn find_attachment(&self, task_id: Uuid, position: i32) -> Option<&'a Attachment> {
        let mut entries = self.rows.own.iter().chain(self.rows.entries);
        let entry = entries.find(|entry| entry.id == task_id)?;
        let file = entry.attachments().iter().find(|file| file.position == position)?;
        Some(file)
    }

    fn turn_block(&self, part: &Part) -> Result<String, Error> {
        let task = self.own.last().copied().unwrap_or_default();
        Ok(xml::close(self.text(part)?, &self.rows.seed.fence(Scope::Turn(task))))
    }

    /// Returns the posts: as the turn stored them, or as text if it ended without an answer.
    fn posts(&self, part: &Part) -> Result<String, Error> {
        if let Some(text) = self.find_text(part) {
            return Ok(text.to_owned());
        }
        let is_shown = |entry: &&Entry| {
            entry.message.role == Role::Posts && self.rows.of_turn.contains(&entry.id)
        };
        let entry = self.rows.entries.iter().find(is_shown);
        let entry = entry.ok_or(Error::Removed { kind: part.kind })?;
        let posts = Posts::of_entry(&entry.message.text);
        let posts = posts.ok_or(Error::Changed { kind: part.kind })?;
        let text = posts.element().render(&self.rows.seed.fence(Scope::Entry(entry.id)));
        check(part, Digest::of(&text))?;
        Ok(text)
    }

    fn find_own(&self, part: &Part) -> Option<&'a Entry> {
        let id: Uuid = part.id.as_deref()?.parse().ok()?;
        self.rows.own.iter().find(|entry| entry.id == id)
    }

    /// Renders the task, or the results that it waited for.
    fn own_entry(&self, part: &Part) -> Result<String, Error> {
        let entry = self.find_own(part).ok_or(Error::Removed { kind: part.kind })?;
        if part.kind == Kind::Task {
            check(part, Digest::of(&entry.message.text))?;
            let name = if part.why == PartReason::Correction { "notice" } else { "task" };
            return Ok(render_entry(name, entry.id, &entry.message, self.rows.seed));
        }
        let text = render_entry("notice", entry.id, &entry.message, self.rows.seed);
        check(part, Digest::of(&text))?;
        Ok(text)
    }

    /// Restores the model's calls of this turn, with their results.
    fn rounds(&self, part: &Part) -> Result<Vec<Arc<Message>>, Error> {
        let (removed, changed) =
            (Error::Removed { kind: part.kind }, Error::Changed { kind: part.kind });
        if let Some(list) = self.find_text(part) {
            let digests: Vec<Digest> = serde_json::from_str(list).map_err(|_| changed.clone())?;
            let message = |digest| {
                let text = self.rows.texts.get(&digest).ok_or(removed.clone())?;
                serde_json::from_str(text).map(Arc::new).map_err(|_| changed.clone())
            };
            return digests.into_iter().map(message).collect();
        }
        let n_entries = part.id.as_deref().and_then(|id| id.split(' ').next()?.parse().ok());
        let n_entries: usize = n_entries.ok_or(changed)?;
        let said = self.rows.entries.iter().filter(|entry| {
            self.rows.of_turn.contains(&entry.id)
                && matches!(entry.message.role, Role::Assistant | Role::Tool)
        });
        let said: Vec<&Entry> = said.take(n_entries).collect();
        if said.len() < n_entries {
            return Err(removed);
        }
        check(part, Digest::chain(said.iter().map(|entry| entry.digest)))?;
        Ok(said.into_iter().map(|entry| self.said(entry)).collect())
    }

    fn said(&self, entry: &Entry) -> Arc<Message> {
        match entry.message.role {
            Role::Tool => Arc::new(fence_result(entry.id, &entry.message, self.rows.seed)),
            _ => Arc::clone(&entry.message),
        }
    }
}

/// Lists the entries that the call sent separately: the task is the last.
pub fn own_entries(manifest: &Manifest) -> Vec<Uuid> {
    let id_of = |kind| {
        let part = manifest.parts.iter().find(|part| part.kind == kind)?;
        part.id.as_deref()?.parse().ok()
    };
    [Kind::Results, Kind::Task].into_iter().filter_map(id_of).collect()
}

fn is_of_tail(part: &Part) -> bool {
    part.kind == Kind::Transcript
        && !matches!(part.why, PartReason::Folded | PartReason::NotInherited)
}

fn check(part: &Part, digest: Digest) -> Result<(), Error> {
    match part.sha256 == Some(digest) {
        true => Ok(()),
        false => Err(Error::Changed { kind: part.kind }),
    }
}
