//! Settings of output files.

use serde::Deserialize;

use super::name;
use crate::{
    domain::limits::{LimitEffect::Sentence, LimitEntry},
    settings::Checks,
};

/// Files are read as a whole, and a value of the database has at most 1 GB.
const MAX_BYTES: u64 = 256_000_000;
const MAX_FILES: usize = 1_000;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files that are stored of one turn.
    pub max_files: usize,
    /// Bytes of one file.
    pub max_file_bytes: u64,
    /// Bytes of all files of one turn.
    pub max_turn_bytes: u64,
}

const REPORTED: &str = "Further files are not stored, and are reported with the task.";

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::setting(
        "output files of a turn",
        "output_files.max_files",
        (0, Some(MAX_FILES as u64)),
        Sentence(REPORTED),
    ),
    LimitEntry::setting(
        "bytes of an output file",
        "output_files.max_file_bytes",
        (0, Some(MAX_BYTES)),
        Sentence("The file is not stored, and is reported with the task."),
    ),
    LimitEntry::setting(
        "bytes of all output files of a turn",
        "output_files.max_turn_bytes",
        (0, Some(MAX_BYTES)),
        Sentence(REPORTED),
    ),
    LimitEntry::fixed(
        "bytes of the name of an attachment or output file",
        name::MAX_BYTES as u64,
        Sentence(
            "An attachment is refused: `bad_attachment`. An output file is not stored, and is reported with the task.",
        ),
    ),
];

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        if self.max_files > MAX_FILES {
            let message = format!("is {}, but must be at most {MAX_FILES}", self.max_files);
            checks.fail("output_files.max_files", message, "100, or 0 to store none");
        }
        let sizes =
            [("max_file_bytes", self.max_file_bytes), ("max_turn_bytes", self.max_turn_bytes)];
        for (key, n_bytes) in sizes.into_iter().filter(|(_, n_bytes)| *n_bytes > MAX_BYTES) {
            let message = format!("is {n_bytes}, but must be at most {MAX_BYTES}");
            checks.fail(&format!("output_files.{key}"), message, "10000000");
        }
    }
}
