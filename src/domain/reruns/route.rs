//! The provider and model of a rerun. The services of jobs find them; they are above the domain, so operations get them as a function.

use std::{fmt, sync::Arc};

use super::Error;

/// Changes to the call that is made again. None by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RerunOptions {
    pub model: Option<String>,
    pub temperature: Option<f32>,
    /// The text of an agent file, in place of the agent's own.
    pub agent_file: Option<String>,
}

/// Provider and model of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRoute {
    pub provider: String,
    pub model: String,
}

/// The route of a rerun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerunRoute {
    pub route: CallRoute,
    /// True if a call may cost money.
    pub has_price: bool,
}

type Find = dyn Fn(&CallRoute, &RerunOptions) -> Result<RerunRoute, Error> + Send + Sync;

/// Finds the routes of reruns, and refuses options that their providers lack. Cheap to clone.
#[derive(Clone)]
pub struct RerunRoutes(Arc<Find>);

impl RerunRoutes {
    pub fn new<F>(find: F) -> Self
    where
        F: Fn(&CallRoute, &RerunOptions) -> Result<RerunRoute, Error> + Send + Sync + 'static,
    {
        Self(Arc::new(find))
    }

    /// Finds the route of a call that is made again with these options.
    pub fn find(&self, own: &CallRoute, options: &RerunOptions) -> Result<RerunRoute, Error> {
        (self.0)(own, options)
    }
}

impl fmt::Debug for RerunRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RerunRoutes").finish_non_exhaustive()
    }
}
