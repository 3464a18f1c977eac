//! Tools that go wrong, for tests.

use std::time::Duration;

use futures_util::{FutureExt as _, future::pending};
use serde_json::json;

use super::{
    Refusal,
    pages::Said,
    tool::{Call, Tool, Who},
};

pub(super) const TOOLS: &[Tool] = &[
    trial("trial_hang", |_| async { Ok(pending().await) }.boxed()),
    trial("trial_fail", |_| async { Err(Refusal::Failed("a secret of the log".into())) }.boxed()),
    trial("trial_panic", |_| async { panic!("a tool that panics") }.boxed()),
    trial("trial_long", |_| {
        async { Ok(Said { text: "0123456789".repeat(1_000_000), ..Said::default() }) }.boxed()
    }),
];

const fn trial(
    name: &'static str,
    run: for<'a> fn(Call<'a>) -> futures_util::future::BoxFuture<'a, Result<Said, Refusal>>,
) -> Tool {
    Tool {
        name,
        description: "Goes wrong.",
        who: Who::Named,
        in_pages: true,
        timeout: Duration::from_secs(1),
        schema: |_| json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        run,
    }
}
