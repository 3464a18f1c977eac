//! Settings of erasures.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::settings::empty_as_none;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(deserialize_with = "empty_as_none")]
    pub key_file: Option<PathBuf>,
}

impl Config {
    /// The file with the key that signs receipts.
    pub fn key_file(&self, data_dir: &Path) -> PathBuf {
        self.key_file.clone().unwrap_or_else(|| data_dir.join("erasure-key.pem"))
    }
}
