//! Access rules of the memory. Tools, API and commands all ask here.
//! ```text
//!                 an agent                 the lead        an operator
//! edicts          read                     all             all
//! records         read, publish            the same        all
//! journals        read and write its own   reads all too   all
//! ```
//!
//! Revoking changes what applies to other agents: only operators revoke records and journals.

use uuid::Uuid;

use super::{Error, Kind, Origin, Trust, name};

/// The reader or writer of a memory.
#[derive(Debug, Clone, Copy)]
pub enum MemoryCaller<'a> {
    /// A person or program; `label` is its name in the audit log.
    Operator { label: &'a str },
    /// An agent in the turn of a task.
    Agent {
        /// Its name on the board; see [`crate::domain::posts::reader`].
        name: &'a str,
        is_lead: bool,
        task_id: Uuid,
        turn: i32,
    },
}

/// The journals that a caller may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Journals<'a> {
    All,
    Of(&'a str),
}

impl<'a> MemoryCaller<'a> {
    /// Returns the name that is stored as the author.
    pub fn label(&self) -> &'a str {
        match self {
            Self::Operator { label } => label,
            Self::Agent { name, .. } => name,
        }
    }

    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Operator { .. } => Origin::Operator,
            Self::Agent { .. } => Origin::Agent,
        }
    }

    /// Returns the trust level of items that the caller writes.
    pub(super) fn trust(&self) -> Trust {
        match self {
            Self::Operator { .. } => Trust::Operator,
            Self::Agent { .. } => Trust::Agent,
        }
    }

    /// Returns the task and the turn if the caller is an agent.
    pub(super) fn task_and_turn(&self) -> (Option<Uuid>, Option<i32>) {
        match self {
            Self::Operator { .. } => (None, None),
            Self::Agent { task_id, turn, .. } => (Some(*task_id), Some(*turn)),
        }
    }

    pub(super) fn is_operator(&self) -> bool {
        matches!(self, Self::Operator { .. })
    }

    /// Returns the journals that the caller may read.
    pub(super) fn journals(&self) -> Journals<'a> {
        match self {
            Self::Operator { .. } | Self::Agent { is_lead: true, .. } => Journals::All,
            Self::Agent { name, .. } => Journals::Of(name),
        }
    }

    /// Returns the owner of an item to write. An agent may write its own journal only.
    pub(super) fn owner_of_new<'b>(
        &self,
        kind: Kind,
        named: Option<&'b str>,
    ) -> Result<&'b str, Error>
    where
        'a: 'b,
    {
        match (kind, self, named) {
            (Kind::Edict, Self::Agent { is_lead: false, .. }, _) => Err(Error::NotAllowed {
                what: "publish edicts".to_owned(),
                advice: "suggest it to the lead on the board, or publish a record",
            }),
            (Kind::Edict | Kind::Record, _, None) => Ok(""),
            (Kind::Edict | Kind::Record, _, Some(_)) => Err(Error::Owner(kind.plural())),
            (Kind::Journal, Self::Operator { .. }, None) => Err(Error::NoOwner),
            (Kind::Journal, Self::Operator { .. }, Some(owner)) => {
                name::check_owner(owner).map(|()| owner)
            }
            (Kind::Journal, Self::Agent { name, .. }, None) => Ok(name),
            (Kind::Journal, Self::Agent { name, .. }, Some(owner)) if owner == *name => Ok(name),
            (Kind::Journal, Self::Agent { .. }, Some(_)) => Err(Error::NotAllowed {
                what: "write in the journal of another agent".to_owned(),
                advice: "write in your own journal, or publish a record",
            }),
        }
    }

    /// Returns the owner of an item to read: an agent name for a journal, empty for edicts and records.
    pub(super) fn owner_of_read<'b>(
        &self,
        kind: Kind,
        named: Option<&'b str>,
    ) -> Result<&'b str, Error>
    where
        'a: 'b,
    {
        match (kind, self.journals(), named) {
            (Kind::Edict | Kind::Record, _, None) => Ok(""),
            (Kind::Edict | Kind::Record, _, Some(_)) => Err(Error::Owner(kind.plural())),
            (Kind::Journal, Journals::Of(own), None) => Ok(own),
            (Kind::Journal, Journals::Of(own), Some(owner)) if owner == own => Ok(own),
            (Kind::Journal, Journals::Of(_), Some(_)) => Err(Error::NotAllowed {
                what: "read the journal of another agent".to_owned(),
                advice: "ask on the board, or read the records",
            }),
            (Kind::Journal, Journals::All, Some(owner)) => Ok(owner),
            (Kind::Journal, Journals::All, None) => match self {
                Self::Agent { name, .. } => Ok(name),
                Self::Operator { .. } => Err(Error::NoOwner),
            },
        }
    }

    pub(super) fn check_revoke(&self, kind: Kind) -> Result<(), Error> {
        match (self, kind) {
            (Self::Operator { .. }, _) | (Self::Agent { is_lead: true, .. }, Kind::Edict) => Ok(()),
            (Self::Agent { .. }, Kind::Edict) => Err(Error::NotAllowed {
                what: "revoke edicts".to_owned(),
                advice: "ask the lead on the board to revoke it",
            }),
            (Self::Agent { .. }, _) => Err(Error::NotAllowed {
                what: format!("revoke {}", kind.plural()),
                advice: "publish a corrected version, or ask the operator",
            }),
        }
    }
}

impl<'a> Journals<'a> {
    /// Returns the parameter for statements. `None` means all journals.
    pub(super) fn column(self) -> Option<&'a str> {
        match self {
            Self::All => None,
            Self::Of(owner) => Some(owner),
        }
    }
}
