//! Files that the agent has written for the readers of its task, within limits.

use std::fmt;

/// Limits of the files that are kept of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    pub max_files: usize,
    pub max_file_bytes: u64,
    pub max_turn_bytes: u64,
}

/// Files of a turn, and those that are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputFiles {
    pub files: Vec<OutputFile>,
    /// At most [`MAX_SKIPPED`].
    pub skipped: Vec<SkippedFile>,
    /// Number of skipped files beyond those.
    pub n_more_skipped: u64,
}

/// A file as it was written. Its name is not checked yet.
#[derive(Clone, PartialEq, Eq)]
pub struct OutputFile {
    /// Path below the folder, with `/` between its parts.
    pub name: Vec<u8>,
    pub content: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    pub name: Vec<u8>,
    pub reason: SkipReason,
}

/// Reasons why a file is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    #[error("it has {n_bytes} bytes, more than output_files.max_file_bytes ({max})")]
    FileTooLong { n_bytes: u64, max: u64 },
    #[error("with its {n_bytes} bytes the turn has more than output_files.max_turn_bytes ({max})")]
    TurnTooLong { n_bytes: u64, max: u64 },
    #[error("the turn has more files than output_files.max_files ({max})")]
    TooManyFiles { max: usize },
    #[error("the folder has more than {max} entries, and the rest was not read")]
    TooManyEntries { max: usize },
    #[error("it is {kind}, and only regular files are kept")]
    NotRegular { kind: &'static str },
    #[error("cannot read it: {0}")]
    Unreadable(String),
}

/// Skipped files that are reported one by one.
pub const MAX_SKIPPED: usize = 20;

impl OutputFiles {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.skipped.is_empty()
    }

    pub fn skip(&mut self, name: Vec<u8>, reason: SkipReason) {
        if self.skipped.len() < MAX_SKIPPED {
            self.skipped.push(SkippedFile { name, reason });
        } else {
            self.n_more_skipped += 1;
        }
    }
}

impl OutputFile {
    pub fn n_bytes(&self) -> u64 {
        u64::try_from(self.content.len()).unwrap_or(u64::MAX)
    }
}

/// Space for the files of a turn.
#[derive(Debug)]
pub struct OutputSpace {
    limits: OutputLimits,
    n_files: usize,
    n_bytes: u64,
}

impl OutputSpace {
    pub fn new(limits: OutputLimits) -> Self {
        Self { limits, n_files: 0, n_bytes: 0 }
    }

    /// Returns the limit for one file.
    pub fn max_file_bytes(&self) -> u64 {
        self.limits.max_file_bytes
    }

    /// Returns the reason why a file of this length does not fit.
    pub fn check(&self, n_bytes: u64) -> Result<(), SkipReason> {
        let OutputLimits { max_files, max_file_bytes, max_turn_bytes } = self.limits;
        if n_bytes > max_file_bytes {
            return Err(SkipReason::FileTooLong { n_bytes, max: max_file_bytes });
        }
        if self.n_files >= max_files {
            return Err(SkipReason::TooManyFiles { max: max_files });
        }
        if self.n_bytes.saturating_add(n_bytes) > max_turn_bytes {
            return Err(SkipReason::TurnTooLong { n_bytes, max: max_turn_bytes });
        }
        Ok(())
    }

    /// Takes the space of a file that fits.
    pub fn take(&mut self, n_bytes: u64) {
        self.n_files += 1;
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
    }
}

/// Without the content, which is long and belongs to the campaign.
impl fmt::Debug for OutputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = String::from_utf8_lossy(&self.name);
        f.debug_struct("OutputFile").field("name", &name).field("n_bytes", &self.n_bytes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beyond_a_limit_are_refused_with_the_setting() {
        let limits = OutputLimits { max_files: 2, max_file_bytes: 10, max_turn_bytes: 15 };
        let mut space = OutputSpace::new(limits);
        let words = [10, 11, 6, 5, 0].map(|n_bytes| match space.check(n_bytes) {
            Ok(()) => {
                space.take(n_bytes);
                None
            }
            Err(reason) => Some(reason.to_string()),
        });
        let too_long = "it has 11 bytes, more than output_files.max_file_bytes (10)";
        let too_many_bytes =
            "with its 6 bytes the turn has more than output_files.max_turn_bytes (15)";
        let too_many = "the turn has more files than output_files.max_files (2)";
        let expected = [None, Some(too_long), Some(too_many_bytes), None, Some(too_many)];
        assert_eq!(words.each_ref().map(Option::as_deref), expected);
    }

    #[test]
    fn many_skipped_files_are_counted() {
        let mut found = OutputFiles::default();
        for n in 0..MAX_SKIPPED + 3 {
            found.skip(n.to_string().into(), SkipReason::TooManyFiles { max: 0 });
        }
        assert_eq!((found.skipped.len(), found.n_more_skipped), (MAX_SKIPPED, 3));
    }

    #[test]
    fn contents_are_not_printed() {
        let file = OutputFile { name: "a".into(), content: "xxx".into() };
        assert_eq!(format!("{file:?}"), "OutputFile { name: \"a\", n_bytes: 3 }");
    }
}
