//! The order in which claims serve the groups.
//!
//! The groups with ready jobs are a ring in alphabetical order, of which a claim looks at 32 at most. The next claim begins
//! after the group that was served last. If none of the 32 has a job of a kind that this worker knows, the next one
//! begins after all of them, because jobs of unknown kinds would otherwise hide the groups behind them for ever.

/// The place in the ring at which the next claim begins.
#[derive(Debug, Default)]
pub(super) struct GroupRing {
    /// Group after which it begins.
    after: String,
    /// Place at which the first of the claims began that have passed all their groups.
    passing_since: Option<String>,
}

impl GroupRing {
    pub(super) fn after(&self) -> &str {
        &self.after
    }

    /// Records a claim that has served this group, or none of those that are left (`None`).
    pub(super) fn serve(&mut self, group: Option<&str>) {
        self.passing_since = None;
        if let Some(group) = group {
            group.clone_into(&mut self.after);
        }
    }

    /// Records a claim without a job in all groups up to this one. After a full round, the next such claim begins a new
    /// one.
    pub(super) fn pass(&mut self, last: String) {
        let since = self.passing_since.take().unwrap_or_else(|| self.after.clone());
        let is_round = if self.after < last {
            self.after < since && since <= last
        } else {
            self.after < since || since <= last
        };
        self.passing_since = (!is_round).then_some(since);
        self.after = last;
    }

    /// Returns true if claims have passed some groups, and others are left to look at.
    pub(super) fn is_passing(&self) -> bool {
        self.passing_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes these groups. Returns after which of them the round goes on.
    fn pass(ring: &mut GroupRing, groups: &[&str]) -> Vec<bool> {
        let pass = |group: &&str| {
            ring.pass((*group).to_owned());
            ring.is_passing()
        };
        groups.iter().map(pass).collect()
    }

    #[test]
    fn claims_pass_groups_until_the_round_is_full() {
        let mut ring = GroupRing::default();
        assert!(!ring.is_passing());
        assert_eq!(pass(&mut ring, &["f", "m", "z", "e"]), [true, true, true, false]);
        assert_eq!(ring.after(), "e");
        assert_eq!(pass(&mut ring, &["m", "z", "d", "k", "y"]), [true, true, true, false, true]);
    }

    #[test]
    fn a_round_that_began_at_its_last_group_ends_there() {
        let mut ring = GroupRing::default();
        ring.serve(Some("m"));
        assert_eq!(pass(&mut ring, &["m"]), [false], "all groups at once");
        assert_eq!(pass(&mut ring, &["z", "c", "m"]), [true, true, false]);
    }

    #[test]
    fn a_served_group_ends_the_round() {
        let mut ring = GroupRing::default();
        assert_eq!(pass(&mut ring, &["f"]), [true]);
        ring.serve(Some("g"));
        assert_eq!((ring.after(), ring.is_passing()), ("g", false));
        assert_eq!(pass(&mut ring, &["m"]), [true]);
        ring.serve(None);
        assert_eq!((ring.after(), ring.is_passing()), ("m", false));
    }
}
