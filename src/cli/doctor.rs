//! `dalsegno doctor`: prints what `crate::doctor` finds.

use super::{Context, Exit, Failure};
use crate::{
    clock::SystemClock,
    doctor::{self, Finding, Status},
};

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let findings = doctor::examine(&context.environment, &context.flags, &SystemClock).await;
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
