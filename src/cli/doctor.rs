//! `dalsegno doctor`: prints what `crate::doctor` finds.

use std::{sync::Arc, time::Duration};

use clap::Args;

use super::{Context, Exit, Failure, signals::run_under_signals, target::Target};
use crate::{
    clock::{Clock, SystemClock},
    doctor::{self, Finding, Status},
    providers::claude::guard,
    shutdown::Shutdown,
};

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Also makes one real call with each credential of Claude, which costs a few tokens.
    #[arg(long)]
    smoke: bool,
}

pub(super) async fn run(doctor: &Doctor, context: &Context) -> Result<Exit, Failure> {
    let shutdown = Shutdown::new();
    // No work has to be drained, so the command stops at the first signal.
    run_under_signals(&shutdown, Duration::MAX, Box::pin(examine(doctor, context, &shutdown))).await
}

async fn examine(doctor: &Doctor, context: &Context, shutdown: &Shutdown) -> Result<Exit, Failure> {
    let (environment, flags, stop) = (&context.environment, &context.flags, &shutdown.soft);
    let mut findings = doctor::examine(environment, flags, &SystemClock, stop).await;
    if doctor.smoke && !stop.is_cancelled() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let guard = guard::program();
        findings.extend(doctor::smoke(environment, flags, &clock, guard, stop).await);
    }
    if stop.is_cancelled() {
        return Ok(Exit::Interrupted);
    }
    let server = context.remote.target(&context.environment).ok().flatten();
    context.output.print_data(&findings, || {
        let lines: String = findings.iter().map(format_finding).collect();
        format!("{lines}{}", server.as_ref().map(not_the_server).unwrap_or_default())
    });
    match findings.iter().any(|finding| finding.status == Status::Fail) {
        true => Ok(Exit::ProblemsFound),
        false => Ok(Exit::Ok),
    }
}

/// Says that the server of other commands was not checked.
fn not_the_server(server: &Target) -> String {
    format!(
        "These checks are of this machine, not of the server {}: the page Doctor of its console checks it.\n",
        server.url
    )
}

fn format_finding(finding: &Finding) -> String {
    let mark = match finding.status {
        Status::Ok => "ok  ",
        Status::Warn => "warn",
        Status::Fail => "FAIL",
        Status::Skipped => "-   ",
    };
    let mut text = format!("{mark}  {:<12}  {}\n", finding.check, finding.what);
    if matches!(finding.status, Status::Warn | Status::Fail) {
        text.push_str(&format!("      why: {}\n      fix: {}\n", finding.why, finding.fix));
    }
    text
}
