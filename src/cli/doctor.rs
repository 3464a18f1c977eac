//! `dalsegno doctor`: prints what `crate::doctor` finds.

use std::time::Duration;

use super::{Context, Exit, Failure, signals::under_signals};
use crate::{
    clock::SystemClock,
    doctor::{self, Finding, Status},
    shutdown::Shutdown,
};

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let shutdown = Shutdown::new();
    // A diagnosis has no work to drain: it stops at the first signal.
    under_signals(&shutdown, Duration::MAX, Box::pin(examine(context, &shutdown))).await
}

async fn examine(context: &Context, shutdown: &Shutdown) -> Result<Exit, Failure> {
    let (environment, flags, stop) = (&context.environment, &context.flags, &shutdown.soft);
    let findings = doctor::examine(environment, flags, &SystemClock, stop).await;
    if stop.is_cancelled() {
        return Ok(Exit::Interrupted);
    }
    context.output.data(&findings, || findings.iter().map(lines).collect());
    match findings.iter().any(|finding| finding.status == Status::Fail) {
        true => Ok(Exit::ProblemsFound),
        false => Ok(Exit::Ok),
    }
}

fn lines(finding: &Finding) -> String {
    let mark = match finding.status {
        Status::Ok => "ok  ",
        Status::Warn => "warn",
        Status::Fail => "FAIL",
        Status::Skipped => "-   ",
    };
    let mut text = format!("{mark}  {:<12}  {}\n", finding.check, finding.what);
    if matches!(finding.status, Status::Warn | Status::Fail) {
        text.push_str(&format!("      why: {}\n      mend: {}\n", finding.why, finding.mend));
    }
    text
}
