//! Names of messages on the command line.

use clap::ValueEnum;

use crate::domain::webhooks::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum KindName {
    #[value(name = "task.done")]
    Done,
    #[value(name = "task.failed")]
    Failed,
    #[value(name = "task.cancelled")]
    Cancelled,
    #[value(name = "budget.warning")]
    BudgetWarning,
}

impl From<KindName> for Kind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Done => Self::Done,
            KindName::Failed => Self::Failed,
            KindName::Cancelled => Self::Cancelled,
            KindName::BudgetWarning => Self::BudgetWarning,
        }
    }
}
