//! Tools that go wrong, for tests.

use std::{path::Path, time::Duration};

use futures_util::{FutureExt as _, future::pending};
use serde_json::json;
use sqlx::PgConnection;

use super::{
    Refusal,
    change::{BeginResult, Change},
    pages::ToolAnswer,
    tool::{Access, Call, Tool},
};

/// Long enough for a test to see that the call runs.
const SEEN_FROM_OUTSIDE: Duration = Duration::from_secs(3);

pub(super) const TOOLS: &[Tool] = &[
    trial("trial_hang", |_| async { Ok(pending().await) }.boxed()),
    Tool {
        timeout: Duration::from_secs(3600),
        schema: |_| json!({ "type": "object", "properties": { "file": { "type": "string" } } }),
        ..trial("trial_wait", |call| wait(call).boxed())
    },
    Tool {
        timeout: SEEN_FROM_OUTSIDE,
        ..trial("trial_slow_look", |call| {
            async move {
                sleep(&mut *call.begin().await?).await?;
                Ok(ToolAnswer::default())
            }
            .boxed()
        })
    },
    Tool {
        timeout: SEEN_FROM_OUTSIDE,
        ..trial("trial_slow_change", |call| {
            async move {
                if let BeginResult::Started(mut change) = Change::begin(&call).await? {
                    sleep(change.conn()).await?;
                }
                Ok(ToolAnswer::default())
            }
            .boxed()
        })
    },
    trial("trial_fail", |_| async { Err(Refusal::Failed("a secret of the log".into())) }.boxed()),
    trial("trial_panic", |_| async { panic!("a tool that panics") }.boxed()),
    trial("trial_long", |_| {
        async { Ok(ToolAnswer { text: "0123456789".repeat(1_000_000), ..ToolAnswer::default() }) }
            .boxed()
    }),
];

/// Waits until the file that the call names exists.
async fn wait(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let file = Path::new(call.arguments["file"].as_str().unwrap_or_default());
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(ToolAnswer { text: "The file is there.".to_owned(), ..ToolAnswer::default() })
}

/// Sleeps far longer than any caller waits.
async fn sleep(conn: &mut PgConnection) -> Result<(), Refusal> {
    let slept = sqlx::query("select pg_sleep(600)").execute(conn).await;
    slept.map(drop).map_err(|error| Refusal::Failed(Box::new(error)))
}

const fn trial(
    name: &'static str,
    run: for<'a> fn(Call<'a>) -> futures_util::future::BoxFuture<'a, Result<ToolAnswer, Refusal>>,
) -> Tool {
    Tool {
        name,
        description: "Goes wrong.",
        who: Access::Named,
        in_pages: true,
        timeout: Duration::from_secs(1),
        schema: |_| json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        run,
    }
}
