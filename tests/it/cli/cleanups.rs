//! `dalsegno schedule` and `dalsegno cleanup`.

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::domain::cleanups;
use serde_json::json;

use super::Fixture;
use crate::{app::noon, cleanup::fill, schedules::put_nightly};

#[tokio::test]
async fn schedules_are_listed_run_paused_and_resumed() {
    let fixture = Fixture::new().await;
    let nothing = fixture.run(&["schedule", "run", "cleanup"]).await;
    assert_eq!(nothing.code, 3, "{nothing:?}");
    assert!(nothing.stderr.contains("schedule ls"), "{nothing:?}");
    put_nightly(&fixture.world.pool, noon()).await;
    let listed = fixture.run(&["schedule", "ls"]).await;
    assert!(listed.stdout.contains("0 0 2 * * *"), "{listed:?}");
    let run = fixture.json(&["schedule", "run", "cleanup"]).await;
    assert_eq!(run["state"], "ready");
    let shown = fixture.json(&["schedule", "show", "cleanup"]).await;
    assert_eq!(shown["name"], "cleanup");
    assert_eq!(shown["last_manual_run"]["job_id"], run["job_id"], "{shown}");
    let shown = fixture.run(&["schedule", "show", "cleanup"]).await;
    assert!(shown.has("by hand") && shown.has(&format!("job {}", run["job_id"])), "{shown:?}");
    let paused = fixture.json(&["schedule", "pause", "cleanup", "--reason", "moving"]).await;
    assert_eq!((&paused["pause_reason"], &paused["next_slot"]), (&json!("moving"), &json!(null)));
    assert!(fixture.run(&["schedule", "ls"]).await.stdout.contains("paused: moving"));
    let resumed = fixture.run(&["schedule", "resume", "cleanup"]).await;
    assert!(resumed.stdout.contains("02:00:00 UTC"), "{resumed:?}");
}

#[tokio::test]
async fn a_recurring_task_is_added_and_removed() {
    let fixture = Fixture::new().await;
    let campaign = fixture.campaign();
    let add = ["schedule", "add", "news", "--campaign", &campaign, "--agent", "copywriter"];
    let wrong = fixture.run(&[&add[..], &["--cron", "daily", "What is new?"]].concat()).await;
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.stderr.contains("six fields"), "{wrong:?}");
    let fine = [&add[..], &["--cron", "0 30 8 * * MON-FRI", "What is new?"]].concat();
    let added = fixture.json(&fine).await;
    assert_eq!(added["payload"]["prompt"], "What is new?");
    assert!(fixture.run(&["schedule", "ls"]).await.stdout.contains("add_task"));
    let changed = fixture.run(&fine).await;
    assert!(changed.stdout.contains("schedule `news` is changed, next at"), "{changed:?}");
    assert!(changed.stdout.contains("its times are in the time zone UTC"), "{changed:?}");
    let mut soon = fine.clone();
    (soon[2], soon[8]) = ("zz-soon", "0 * * * * *");
    fixture.json(&soon).await;
    let list = fixture.run(&["schedule", "ls"]).await.stdout;
    assert!(list.find("zz-soon").unwrap() < list.find("news").unwrap(), "{list}");
    let gone = fixture.run(&["schedule", "rm", "news"]).await;
    assert_eq!((gone.code, gone.stdout.trim()), (0, "schedule `news` is removed"));
    assert_eq!(fixture.run(&["schedule", "rm", "news"]).await.code, 3);
}

#[tokio::test]
async fn a_dry_run_for_a_later_time_counts_what_expires_until_then() {
    let fixture = Fixture::new().await;
    let (pool, campaign) = (&fixture.world.pool, fixture.world.campaign.id);
    fill(pool, campaign, "later", "sim", 2, 3, Utc::now() + TimeDelta::days(1)).await;
    let count = async |at: &str| {
        let preview = fixture.json(&["cleanup", "--dry-run", "--at", at]).await;
        preview["sessions"].as_i64().unwrap()
    };
    let in_two_days = (Utc::now() + TimeDelta::days(2)).to_rfc3339();
    let now = Utc::now().to_rfc3339();
    assert_eq!((count(&now).await, count(&in_two_days).await), (0, 2));
    let without = fixture.run(&["cleanup", "--at", &now]).await;
    assert!(without.code == 2 && without.has("--dry-run"), "{without:?}");
    let unknown = fixture.run(&["cleanup", "--dry-run", "--at", "next"]).await;
    assert!(unknown.code == 5 && unknown.has("`dalsegno schedule show cleanup`"), "{unknown:?}");
    put_nightly(pool, noon()).await;
    let next = fixture.json(&["schedule", "show", "cleanup"]).await["next_slot"].clone();
    let next: DateTime<Utc> = serde_json::from_value(next).unwrap();
    let next = next.format("%F %T");
    let of_next = fixture.run(&["cleanup", "--dry-run", "--at", "next"]).await.stdout;
    assert!(of_next.contains(&format!("\nas of {next} UTC\n")), "{of_next}");
    let of_now = fixture.run(&["cleanup", "--dry-run"]).await.stdout;
    let named =
        format!("\nnext run: {next} UTC; `dalsegno cleanup --dry-run --at next` previews it\n");
    assert!(of_now.contains("\nas of 20") && of_now.contains(&named), "{of_now}");
    let runs = fixture.run(&["cleanup", "runs"]).await;
    assert!(runs.stderr.contains("no cleanups: "), "{runs:?}");
}

#[tokio::test]
async fn a_dry_run_lists_rows_and_reasons_and_removes_nothing() {
    let fixture = Fixture::new().await;
    let empty = fixture.run(&["cleanup", "--dry-run"]).await;
    assert!(
        empty.code == 0 && empty.stdout.starts_with("no session would be removed\n"),
        "{empty:?}"
    );
    assert!(empty.has("`audit.keep_days`"), "what is not counted is named: {empty:?}");
    let (pool, campaign) = (&fixture.world.pool, fixture.world.campaign.id);
    let yesterday = Utc::now() - TimeDelta::days(1);
    fill(pool, campaign, "old", "sim", 4, 6, yesterday).await;
    fill(pool, campaign, "copywriter", "ollama", 1, 2, yesterday).await;
    let mut new = fixture.world.ask("Wait.");
    new.instance = "i1";
    fixture.world.add_new(&new).await.unwrap();
    let output = fixture.run(&["cleanup", "--dry-run"]).await;
    for words in [
        "4 sessions would be removed, with 24 messages",
        "expired",
        "task waiting",
        "nothing was removed",
    ] {
        assert!(output.stdout.contains(words), "{words}: {output:?}");
    }
    let seen = fixture.json(&["cleanup", "--dry-run"]).await;
    assert_eq!((&seen["sessions"], &seen["kept"]), (&json!(4), &json!({ "task_waiting": 1 })));
    assert_eq!(cleanups::list(pool, None, 9).await.unwrap().len(), 0);
    let asked = fixture.json(&["cleanup"]).await;
    assert_eq!(asked["state"], "ready");
    let mut conn = pool.acquire().await.unwrap();
    let run = cleanups::begin(&mut conn, 1, 1, None, noon()).await.unwrap().unwrap();
    cleanups::finish(&mut *conn, &run, noon()).await.unwrap();
    let runs = fixture.run(&["cleanup", "runs"]).await;
    assert!(runs.stdout.contains("done") && runs.stdout.contains("nothing"), "{runs:?}");
}
