//! Who may do what. The one place where that is decided.
//!
//! ```text
//!                 an agent                 the lead        an operator
//! edicts          read                     all             all
//! records         read, publish            the same        all
//! journals        read and write its own   reads all too   all
//! ```
//!
//! To revoke is to change what holds for others: of records and journals only operators do it.

use uuid::Uuid;

use super::{Error, Kind, Origin, Trust, name};

/// Who reads or writes.
#[derive(Debug, Clone, Copy)]
pub enum Who<'a> {
    /// As the audit log names them.
    Operator { label: &'a str },
    /// In the turn of a task.
    Agent {
        /// As it is called on the board; see [`crate::domain::posts::reader`].
        name: &'a str,
        is_lead: bool,
        task_id: Uuid,
        turn: i32,
    },
}

/// Whose journals somebody may look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Journals<'a> {
    All,
    Of(&'a str),
}

impl<'a> Who<'a> {
    /// What is stored as the author.
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

    /// What is trusted of what it writes itself.
    pub(super) fn trust(&self) -> Trust {
        match self {
            Self::Operator { .. } => Trust::Operator,
            Self::Agent { .. } => Trust::Agent,
        }
    }

    /// The task and the turn, of an agent.
    pub(super) fn place(&self) -> (Option<Uuid>, Option<i32>) {
        match self {
            Self::Operator { .. } => (None, None),
            Self::Agent { task_id, turn, .. } => (Some(*task_id), Some(*turn)),
        }
    }

    pub(super) fn is_operator(&self) -> bool {
        matches!(self, Self::Operator { .. })
    }

    /// The journals that it may read.
    pub(super) fn journals(&self) -> Journals<'a> {
        match self {
            Self::Operator { .. } | Self::Agent { is_lead: true, .. } => Journals::All,
            Self::Agent { name, .. } => Journals::Of(name),
        }
    }

    /// Whose the item is that it wants to write: an agent's journal is its own, whatever it says.
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
                advice: "tell the lead on the board what should hold for all, or publish a record",
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
                what: "write in the journal of another".to_owned(),
                advice: "write in your own, or publish a record",
            }),
        }
    }

    /// Whose journal it wants to read; of the other kinds nobody's.
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
                what: "read the journal of another".to_owned(),
                advice: "ask on the board, or look into the records",
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
                advice: "tell the lead on the board why one should hold no more",
            }),
            (Self::Agent { .. }, _) => Err(Error::NotAllowed {
                what: format!("revoke {}", kind.plural()),
                advice: "publish a version that says what is true now, or ask the operator",
            }),
        }
    }
}

impl<'a> Journals<'a> {
    /// For statements: `None` is all.
    pub(super) fn column(self) -> Option<&'a str> {
        match self {
            Self::All => None,
            Self::Of(owner) => Some(owner),
        }
    }
}
