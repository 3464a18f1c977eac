//! One handler per kind of job, and the one list of them.

mod ping;
#[cfg(feature = "test-fakes")]
pub mod trial;

pub use self::ping::Ping;
use crate::queue::Registry;

/// Every kind that the workers of this service know.
pub fn registry() -> Registry<()> {
    let registry = Registry::new(()).with(ping::run);
    #[cfg(feature = "test-fakes")]
    let registry = trial::register(registry);
    registry
}
