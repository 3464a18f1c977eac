//! Reserved names: agents cannot have them, because they mean something else on the board and as senders.

/// All agents of a campaign.
pub const ALL: &str = "all";
/// The people who run the campaign.
pub const OPERATOR: &str = "operator";
/// The service itself.
pub const SYSTEM: &str = "system";

pub(super) const RESERVED_NAMES: [&str; 3] = [ALL, OPERATOR, SYSTEM];
