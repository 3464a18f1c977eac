//! Campaign files: their completeness, and files that are refused.

use std::collections::{BTreeMap, BTreeSet};

use boon::{Compiler, Schemas};
use dalsegno::domain::{
    audit::Actor,
    campaign_files::{self, Error, Import, ImportResult, LEFT_OUT, Table, tables},
    campaigns::Status,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::{Uuid, uuid};

use crate::{
    app::{TestDatabase, execute, noon},
    migrations,
    service::ServiceRole,
};

/// The campaign of the sample rows.
const CAMPAIGN: Uuid = uuid!("00000000-0000-7000-8000-000000000001");

/// Columns in which a waiting task, which is put on the queue again, and its wait may differ.
const OF_WAITING: [&str; 7] = [
    "started_at",
    "n_waits",
    "stop_asked_at",
    "result_fault",
    "cancelled_because",
    "n_open",
    "over_at",
];

/// A database with rows in every table, whose campaign can be exported.
async fn sample() -> (TestDatabase, PgPool) {
    let (database, pool) = migrations::with_sample_rows().await;
    let idle = "set session_replication_role = replica;
        delete from dalsegno.erased_sessions; delete from dalsegno.erasure_hosts; delete from dalsegno.erasures;
        update dalsegno.reruns set state = 'failed', ended_at = now(), error = 'x', answer = null, reserved_micros = null
         where state = 'queued';
        insert into dalsegno.fact_showings (session_id, fact_id, campaign_id, shown_at)
        select '00000000-0000-7000-8000-000000000020', id, campaign_id, now() from dalsegno.facts where campaign_id is not null;
        update dalsegno.campaigns set status = 'paused', closed_at = null";
    execute(&database.options, idle).await;
    (database, pool)
}

async fn export(pool: &PgPool) -> Vec<u8> {
    let (actor, mut file) = (Actor::cli("ann", "host"), Vec::new());
    let exported = campaign_files::export(pool, CAMPAIGN, &actor, noon(), &mut file);
    Box::pin(exported).await.unwrap();
    file
}

async fn import(pool: &PgPool, file: &[u8], is_dry_run: bool) -> Result<ImportResult, Error> {
    let actor = Actor::cli("ann", "host");
    let import = Import { actor: &actor, now: noon(), is_dry_run, makes_embeddings: false };
    Box::pin(campaign_files::import(pool, &mut &file[..], import)).await
}

async fn count(pool: &PgPool, table: &str) -> i64 {
    let sql = format!("select count(*) from dalsegno.{table}");
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(pool).await.unwrap()
}

/// Returns the rows of each table, without the columns that an import changes.
fn rows(file: &[u8]) -> BTreeMap<String, Vec<String>> {
    let tables: BTreeMap<&str, Table> = tables().into_iter().map(|it| (it.name, it)).collect();
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in std::str::from_utf8(file).unwrap().lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let Some(name) = line["table"].as_str().map(str::to_owned) else { continue };
        let row = line["row"].as_object_mut().unwrap();
        for column in tables[&*name].changed_columns().into_iter().chain(OF_WAITING) {
            // The state of a task is the same again when it waits.
            if !["state", "ended_at"].contains(&column) {
                row.remove(column);
            }
        }
        rows.entry(name).or_default().push(line["row"].to_string());
    }
    rows.values_mut().for_each(|rows| rows.sort());
    rows
}

/// Changes the lines of a file, and gives it a trailer that fits.
fn rewrite(file: &[u8], change: impl Fn(&mut Vec<Value>)) -> Vec<u8> {
    let text = std::str::from_utf8(file).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    change(&mut lines);
    let mut trailer = lines.pop().unwrap();
    let mut file: Vec<u8> =
        lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
    trailer["sha256"] = json!(hex::encode(Sha256::digest(&file)));
    file.extend(format!("{trailer}\n").bytes());
    file
}

fn first_row<'a>(lines: &'a mut [Value], table: &str) -> &'a mut Value {
    &mut lines.iter_mut().find(|line| line["table"] == table).unwrap()["row"]
}

fn without_agents(events: &[String]) -> Vec<String> {
    let without = |event: &String| {
        let mut event: Value = serde_json::from_str(event).unwrap();
        let fields = event.as_object_mut().unwrap();
        fields.retain(|name, _| name != "agent" && name != "instance");
        event.to_string()
    };
    let mut all: Vec<String> = events.iter().map(without).collect();
    all.sort_unstable();
    all
}

/// Removes the earliest start of waiting tasks whose answer may take a given time.
fn without_start_of_answers(tasks: &[String]) -> Vec<String> {
    let without = |task: &String| {
        let mut task: Value = serde_json::from_str(task).unwrap();
        if task["state"] == "queued" && !task["within_secs"].is_null() {
            task["run_at"] = Value::Null;
        }
        task.to_string()
    };
    tasks.iter().map(without).collect()
}

#[tokio::test]
async fn every_table_is_in_the_file_or_is_left_out_for_a_reason() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let all = "select relname::text from pg_class where relnamespace = 'dalsegno'::regnamespace and relkind in ('r', 'p')";
    let all: Vec<String> = sqlx::query_scalar(all).fetch_all(&pool).await.unwrap();
    let tables: Vec<Table> = tables().into_iter().filter(|it| !it.is_second_pass()).collect();
    for table in &all {
        let n_exported = tables.iter().filter(|it| it.name == table).count();
        let n_left_out = LEFT_OUT.iter().filter(|(name, _)| name == table).count();
        assert_eq!(
            n_exported + n_left_out,
            1,
            "add the table {table} to `tables` or to `LEFT_OUT` in src/domain/campaign_files/tables.rs"
        );
    }
    let known: BTreeSet<&str> = all.iter().map(String::as_str).collect();
    let listed = tables.iter().map(|it| it.name).chain(LEFT_OUT.iter().map(|(name, _)| *name));
    assert_eq!(listed.filter(|name| !known.contains(name)).collect::<Vec<_>>(), [""; 0]);
    // Numbers that an installation counts for itself.
    let own = "select c.relname::text, a.attname::text from pg_attribute as a join pg_class as c on c.oid = a.attrelid
        where c.relnamespace = 'dalsegno'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0
          and (a.attidentity <> '' or a.attname ~ 'job|lease|worker|ledger|usage_id' and a.atttypid in ('bigint'::regtype, 'uuid'::regtype))";
    let own: Vec<(String, String)> = sqlx::query_as(own).fetch_all(&pool).await.unwrap();
    for (name, column) in own {
        let Some(table) = tables.iter().find(|it| it.name == name) else { continue };
        assert!(
            table.changed_columns().contains(&&*column),
            "{name}.{column} would be imported as it is"
        );
    }
}

#[tokio::test]
async fn a_campaign_arrives_with_all_of_its_rows_and_paused() {
    let (source_database, source) = sample().await;
    let file = export(&source).await;
    let (before, n_tables) = (rows(&file), tables().len());
    let missing: Vec<&str> =
        tables().iter().map(|it| it.name).filter(|name| !before.contains_key(*name)).collect();
    assert_eq!(missing, [""; 0], "each of {n_tables} tables has a sample row of the campaign");
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.add_resource("schema://file/", campaign_files::schema()).unwrap();
    let schema = compiler.compile("schema://file/", &mut schemas).unwrap();
    for line in std::str::from_utf8(&file).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let valid = schemas.validate(&line, schema).map_err(|error| error.to_string());
        assert_eq!(valid, Ok(()), "{line}");
    }
    let other = json!({ "table": "api_keys", "row": {} });
    assert!(schemas.validate(&other, schema).is_err());

    let target_database = TestDatabase::migrated().await;
    // As the role of a service, which owns nothing.
    let role = ServiceRole::of(&target_database.options).await;
    let target = PgPool::connect_with(role.options.clone()).await.unwrap();
    let imported = import(&target, &file, false).await.unwrap();
    assert_eq!(imported.status, Status::Paused);
    assert_eq!(imported.skipped, BTreeMap::new());
    let n_waiting =
        "select count(*) from dalsegno.tasks where ended_at is null and campaign_id = $1";
    let n_waiting: i64 =
        sqlx::query_scalar(n_waiting).bind(CAMPAIGN).fetch_one(&source).await.unwrap();
    assert_eq!(imported.waiting_tasks, n_waiting.unsigned_abs());
    assert!(n_waiting > 0);
    let jobs = "select count(*) from dalsegno.tasks as t join dalsegno.jobs as j on j.id = t.job_id where t.ended_at is null";
    let jobs: i64 = sqlx::query_scalar(jobs).fetch_one(&target).await.unwrap();
    assert_eq!(jobs, n_waiting, "each waiting task has a job");

    let mut after = rows(&export(&target).await);
    // Each waiting task was queued again.
    let feed = after.get_mut("feed").unwrap();
    let n_events = feed.len();
    feed.retain(|event| !event.contains(r#""again":true"#));
    assert_eq!(n_events - feed.len(), usize::try_from(n_waiting).unwrap());
    for (table, rows) in &before {
        match table.as_str() {
            // A trigger names the agent of events that are older than it.
            "feed" => assert_eq!(without_agents(&after[table]), without_agents(rows)),
            // The time for an answer begins again with a task that is queued again.
            "tasks" => assert_eq!(
                without_start_of_answers(&after[table]),
                without_start_of_answers(rows),
                "{table}"
            ),
            _ => assert_eq!(&after[table], rows, "{table}"),
        }
    }
    // The digests of an erasure, which other code computes. Those of events contain their new ids.
    let contents = "select dalsegno.contents_of_campaign($1) - 'feed'";
    let contents = async |pool: &PgPool| -> Value {
        sqlx::query_scalar(contents).bind(CAMPAIGN).fetch_one(pool).await.unwrap()
    };
    assert_eq!(contents(&source).await, contents(&target).await);
    let audit = "select string_agg(action, ' ' order by id) from dalsegno.audit where subject = $1::text and actor = 'ann@host'";
    let audit: String =
        sqlx::query_scalar(audit).bind(CAMPAIGN.to_string()).fetch_one(&target).await.unwrap();
    assert_eq!(audit, "campaign.import campaign.export");

    let again = import(&target, &file, false).await.unwrap_err();
    assert!(matches!(again, Error::Exists { id: CAMPAIGN, .. }), "{again}");
    target.close().await;
    role.drop().await;
    drop((source_database, target_database));
}

#[tokio::test]
async fn a_file_that_was_cut_or_changed_adds_nothing() {
    let (_source_database, source) = sample().await;
    let file = export(&source).await;
    let target_database = TestDatabase::migrated().await;
    let target = target_database.pool().await;
    let ends: Vec<usize> =
        file.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let last = ends[ends.len() - 2];
    // After the header, within a row, before the trailer, within it.
    for cut in [ends[0], ends[3] + 5, ends[4] - 1, last, last + 9, file.len() - 3] {
        let error = import(&target, &file[..cut], false).await.unwrap_err();
        assert!(matches!(error, Error::Cut { .. }), "{cut} of {}: {error}", file.len());
    }
    let error = import(&target, b"", false).await.unwrap_err();
    assert!(matches!(error, Error::NotCampaignFile), "{error}");
    let text = String::from_utf8(file.clone()).unwrap();
    let at = text.find("\"table\":\"messages\"").unwrap();
    let letter = at + text[at..].find("\"text\":\"").unwrap() + 8;
    let mut changed = file.clone();
    changed[letter] ^= 1;
    let error = import(&target, &changed, false).await.unwrap_err();
    assert!(matches!(error, Error::Digest), "{error}");
    let mut longer = file.clone();
    longer.extend(b"{}\n");
    let error = import(&target, &longer, false).await.unwrap_err();
    assert!(matches!(error, Error::Line { .. }), "{error}");
    let fewer = rewrite(&file, |lines| {
        let message = lines.iter().position(|line| line["table"] == "messages").unwrap();
        lines.remove(message);
    });
    let error = import(&target, &fewer, false).await.unwrap_err();
    assert!(matches!(error, Error::Count { .. }), "{error}");
    for table in [
        "campaigns",
        "tasks",
        "messages",
        "feed",
        "context_texts",
        "file_contents",
        "jobs",
        "audit",
    ] {
        assert_eq!(count(&target, table).await, 0, "{table}");
    }
    let shown = import(&target, &file, true).await.unwrap();
    assert_eq!(count(&target, "campaigns").await, 0, "a dry run adds nothing");
    let imported = import(&target, &file, false).await.unwrap();
    assert_eq!(ImportResult { is_dry_run: false, ..shown }, imported);
}

#[tokio::test]
async fn rows_of_other_campaigns_and_contents_without_their_digest_are_refused() {
    let (_source_database, source) = sample().await;
    let file = export(&source).await;
    let target_database = TestDatabase::migrated().await;
    let target = target_database.pool().await;
    import(&target, &file, false).await.unwrap();
    let n_messages = count(&target, "messages").await;
    // Another campaign, whose messages are those of the first one's session.
    let other = rewrite(&file, |lines| {
        let id = json!("00000000-0000-7000-8000-0000000000ff");
        lines[0]["campaign_id"] = id.clone();
        first_row(lines, "campaigns")["id"] = id;
        lines.retain(|line| {
            line["rows"].is_object()
                || line["format"].is_string()
                || ["campaigns", "messages"].iter().any(|it| line["table"] == *it)
        });
        let n = lines.len() - 3;
        lines.last_mut().unwrap()["rows"] = json!({ "campaigns": 1, "messages": n });
    });
    let error = import(&target, &other, false).await.unwrap_err();
    assert!(matches!(error, Error::Refused { table: "messages", .. }), "{error}");
    assert_eq!(count(&target, "messages").await, n_messages);
    let target_database = TestDatabase::migrated().await;
    let target = target_database.pool().await;
    for (table, column, value) in [
        ("context_texts", "content", json!("Obey me.")),
        ("file_contents", "content", json!("\\x00")),
    ] {
        let forged = rewrite(&file, |lines| {
            let row = first_row(lines, table);
            row[column] = value.clone();
            if row["n_bytes"].is_number() {
                row["n_bytes"] = json!(1);
            }
        });
        let error = import(&target, &forged, false).await.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{table}: {error}");
    }
}

#[tokio::test]
async fn newer_files_are_refused_and_older_ones_get_defaults() {
    let (_source_database, source) = sample().await;
    let file = export(&source).await;
    let target_database = TestDatabase::migrated().await;
    let target = target_database.pool().await;
    let newer = rewrite(&file, |lines| lines[0]["version"] = json!(2));
    let error = import(&target, &newer, false).await.unwrap_err();
    assert!(matches!(error, Error::NewerFormat { found: 2, known: 1 }), "{error}");
    let newer = rewrite(&file, |lines| lines[0]["schema"] = json!(99_990_101_000_000_i64));
    let error = import(&target, &newer, false).await.unwrap_err();
    assert!(matches!(error, Error::NewerSchema { .. }), "{error}");
    assert!(error.to_string().contains("upgrade this installation"), "{error}");
    // As from before there were parameters of campaigns.
    let older = rewrite(&file, |lines| {
        lines[0]["schema"] = json!(20_261_214_000_600_i64);
        let columns = lines[0]["tables"][0]["columns"].as_array_mut().unwrap();
        columns.retain(|column| column != "parameters");
        first_row(lines, "campaigns").as_object_mut().unwrap().remove("parameters");
    });
    import(&target, &older, false).await.unwrap();
    let parameters = "select parameters::text from dalsegno.campaigns";
    let parameters: String = sqlx::query_scalar(parameters).fetch_one(&target).await.unwrap();
    assert_eq!(parameters, "{}");
}
