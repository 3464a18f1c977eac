//! The bench of computations in memory: one JSON line per scenario.
//!
//! ```text
//! cargo bench --bench context                    all
//! cargo bench --bench context -- plan_memory     some scenarios only
//! ```

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "prints its figures, and starts itself to measure the memory of one plan alone"
)]

mod history;
mod memory;
mod plan;
#[path = "../common/size.rs"]
mod size;

use serde_json::Value;

type Scenario = fn() -> anyhow::Result<Value>;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if let [flag, n_messages] = args.as_slice()
        && flag == memory::CHILD
    {
        return memory::measure_alone(n_messages.parse()?);
    }
    for (name, scenario) in scenarios() {
        if args.is_empty() || args.iter().any(|wanted| wanted == name) {
            println!("{}", scenario()?);
        }
    }
    Ok(())
}

fn scenarios() -> [(&'static str, Scenario); 3] {
    [
        ("compaction_plan", plan::plan_alone),
        ("compaction_begin", plan::with_pins),
        ("plan_memory", memory::by_length),
    ]
}
