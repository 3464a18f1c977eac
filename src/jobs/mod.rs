//! One handler per kind of job, and the one list of them.

mod ping;

pub use self::ping::Ping;
use crate::queue::Registry;

/// Every kind that the workers of this service know.
pub fn registry() -> Registry<()> {
    Registry::new(()).with(ping::run)
}
