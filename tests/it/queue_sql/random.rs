//! Random sequences of all events of the queue, compared with the model.

use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::{machine::Machine, steps};
use crate::{app::TestDatabase, embedded::support::Random};

/// Number of sequences in the normal run. `PROPTEST_CASES` sets another number, `PROPTEST_RNG_SEED` repeats a run.
const N_CASES: u32 = 60;

#[test]
fn the_queue_behaves_like_the_model() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(TestDatabase::migrated());
    let machine = std::cell::RefCell::new(runtime.block_on(Machine::new(&database)));
    let mut runner = TestRunner::new(config());
    let outcome =
        runner.run(&steps::sequence(), |steps| runtime.block_on(machine.borrow_mut().run(&steps)));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn config() -> Config {
    let mut config = Config {
        // The seed and the shortest sequence are printed; files beside the source would not be read.
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = N_CASES;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(Random::seeded().below(u64::MAX));
    }
    println!("PROPTEST_RNG_SEED={} PROPTEST_CASES={}", config.rng_seed, config.cases);
    config
}
