//! The transcript file of a session, as far as a resume needs it.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
};

use serde_json::{Value, json};

use crate::config_dir;

pub(crate) struct Transcript {
    path: PathBuf,
    /// Parent and kind of each line, by its id.
    lines: BTreeMap<String, (Option<String>, String)>,
    last: Option<String>,
    buffer: Vec<u8>,
}

impl Transcript {
    pub(crate) fn open(session: &str) -> Self {
        let cwd = std::env::current_dir().unwrap_or_default();
        let dash = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let slug: String = cwd.to_string_lossy().chars().map(dash).collect();
        let folder = config_dir().join("projects").join(slug);
        Self {
            path: folder.join(format!("{session}.jsonl")),
            lines: BTreeMap::new(),
            last: None,
            buffer: Vec::new(),
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Reads the file, skips invalid lines, and moves to the message after which the turn continues.
    pub(crate) fn resume(&mut self, at: Option<&str>) -> Result<(), String> {
        let text = fs::read(&self.path).unwrap_or_default();
        for line in String::from_utf8_lossy(&text).lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            let (Some(uuid), Some(kind)) = (line["uuid"].as_str(), line["type"].as_str()) else {
                continue;
            };
            let parent = line["parentUuid"].as_str().map(str::to_owned);
            self.lines.insert(uuid.to_owned(), (parent, kind.to_owned()));
            self.last = Some(uuid.to_owned());
        }
        if self.last.is_none() {
            return Err("No conversation found with session ID: it".to_owned());
        }
        match at {
            Some(at) if !self.lines.contains_key(at) => {
                Err(format!("No message found with message.uuid of: {at}"))
            }
            Some(at) => {
                self.last = Some(at.to_owned());
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Counts the messages of a request: consecutive lines of one side are one message.
    pub(crate) fn n_messages(&self) -> usize {
        let (mut n, mut at, mut before) = (0, self.last.as_ref(), "");
        while let Some((parent, kind)) = at.and_then(|at| self.lines.get(at)) {
            n += usize::from(before != kind);
            before = kind;
            at = parent.as_ref();
        }
        n
    }

    pub(crate) fn add(&mut self, kind: &str, uuid: &str, message: &Value) {
        let line = json!({"parentUuid": self.last, "type": kind, "uuid": uuid, "message": message,
            "timestamp": "2026-11-20T12:00:00.000Z"});
        self.buffer.extend_from_slice(format!("{line}\n").as_bytes());
        self.lines.insert(uuid.to_owned(), (self.last.take(), kind.to_owned()));
        self.last = Some(uuid.to_owned());
    }

    pub(crate) fn flush(&mut self) {
        let _ = self.path.parent().map(fs::create_dir_all);
        let file = OpenOptions::new().create(true).mode(0o600).append(true).open(&self.path);
        let _ = file.and_then(|mut file| file.write_all(&self.buffer));
        self.buffer.clear();
    }
}
