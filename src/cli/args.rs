//! Arguments that several nouns have.

use clap::Args;

use crate::domain::ids::Given;

#[derive(Debug, Args)]
pub(super) struct Id {
    /// The id, or as much of its beginning as no other has.
    pub(super) id: Given,
}

/// Which part of a list.
#[derive(Debug, Args)]
pub(super) struct Paging {
    /// Only those before this one: the last id of the page before.
    #[arg(long, value_name = "ID")]
    pub(super) after: Option<Given>,
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub(super) limit: i64,
}
