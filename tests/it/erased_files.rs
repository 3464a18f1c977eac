//! Erased texts in the server's data files, and the receipt of the erasure.

use std::path::{Path, PathBuf};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{
    app::{SOON, TestDatabase, eventually},
    cluster::scratch_folder,
    erasure::{ERASED_WORD, tables_with},
    service::{Service, dalsegno},
};

const KEPT_WORD: &str = "palimpsest4410";
/// Tasks in each of the two campaigns, alternating, so that they share pages.
const TASKS: usize = 12;

struct Setup {
    url: String,
    pool: PgPool,
    folder: tempfile::TempDir,
    _service: Service,
    _database: TestDatabase,
}

impl Setup {
    async fn new() -> Self {
        let (database, folder) = (TestDatabase::migrated().await, scratch_folder());
        let url = database.url();
        let settings = [
            ("DATABASE_URL", url.as_str()),
            ("DALSEGNO_SIM__LATENCY_MS", "0"),
            ("DALSEGNO_SIM__CHUNK_DELAY_MS", "0"),
            ("DALSEGNO_SIM__DIRECTIVES", "true"),
        ];
        let service = Service::start(folder.path(), &settings).await;
        let pool = database.pool().await;
        Self { url, pool, folder, _service: service, _database: database }
    }

    async fn run(&self, arguments: &[&str], url: &str) -> (i32, Value, String) {
        let mut command = dalsegno(self.folder.path());
        command.args(arguments).arg("--json").env("DATABASE_URL", url);
        let output = tokio::time::timeout(SOON, command.output()).await.unwrap().unwrap();
        let said = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code().unwrap(), said, String::from_utf8(output.stderr).unwrap())
    }

    async fn run_json(&self, arguments: &[&str]) -> Value {
        let (code, said, error) = self.run(arguments, &self.url).await;
        assert_eq!(code, 0, "{arguments:?}: {error}");
        said
    }

    /// Verifies a receipt without a database.
    async fn verify(&self, receipt: &Value, more: &[&str]) -> (i32, Value, String) {
        let file = self.folder.path().join("receipt.json");
        std::fs::write(&file, receipt.to_string()).unwrap();
        let verify = ["erasure", "verify", file.to_str().unwrap()];
        self.run(&[&verify[..], more].concat(), "postgres://tester@127.0.0.1:1/none").await
    }

    /// Lists files of the database that contain a word.
    async fn files_with(&self, word: &str) -> Vec<PathBuf> {
        sqlx::query("checkpoint").execute(&self.pool).await.unwrap();
        let folder = "select current_setting('data_directory') || '/base/' || oid from pg_database where datname = current_database()";
        let folder: String = sqlx::query_scalar(folder).fetch_one(&self.pool).await.unwrap();
        let files = std::fs::read_dir(Path::new(&folder)).unwrap().map(|file| file.unwrap().path());
        let has_word = |file: &PathBuf| {
            let bytes = std::fs::read(file).unwrap_or_default();
            bytes.windows(word.len()).any(|part| part == word.as_bytes())
        };
        files.filter(has_word).collect()
    }
}

/// Signs a receipt again with another key.
fn resign_receipt(receipt: &Value, key: &Path, kind: Option<&str>) -> Value {
    let key = dalsegno::domain::erasures::Key::open_or_create(key).unwrap();
    let mut receipt = receipt.clone();
    let statement = receipt["signed"]["statement"].as_str().unwrap();
    let mut statement: Value = serde_json::from_str(statement).unwrap();
    if let Some(kind) = kind {
        statement["type"] = json!(kind);
    }
    let statement = statement.to_string();
    let signature = BASE64_STANDARD.encode(key.sign(statement.as_bytes()));
    receipt["signed"] =
        json!({ "statement": statement, "signature": signature, "public_key": key.public_text() });
    receipt
}

#[tokio::test]
async fn erased_text_leaves_the_data_files_and_the_receipt_is_verified_without_the_service() {
    let setup = Setup::new().await;
    let mut campaigns = Vec::new();
    for word in [ERASED_WORD, KEPT_WORD] {
        let campaign = setup.run_json(&["campaign", "create", word, "--brief", word]).await;
        campaigns.push(campaign["id"].as_str().unwrap().to_owned());
    }
    for n in 0..TASKS {
        for (campaign, word) in campaigns.iter().zip([ERASED_WORD, KEPT_WORD]) {
            let add = "select dalsegno.add_task($1::uuid, 'copywriter', $2, instance => $3)::text";
            let prompt = format!("{word} {n}. [[sim: say All about {word}.]]");
            let added = sqlx::query(add).bind(campaign).bind(prompt).bind(format!("i{}", n % 3));
            added.execute(&setup.pool).await.unwrap();
        }
    }
    let done = "select count(*) from dalsegno.tasks where state = 'done'";
    eventually("all tasks are done", async || {
        let n: i64 = sqlx::query_scalar(done).fetch_one(&setup.pool).await.unwrap();
        (n == 2 * TASKS as i64).then_some(())
    })
    .await;
    assert!(!setup.files_with(ERASED_WORD).await.is_empty());
    let going = &*campaigns[0];
    let contents = "select dalsegno.contents_of_campaign($1::uuid)";
    let contents: Value =
        sqlx::query_scalar(contents).bind(going).fetch_one(&setup.pool).await.unwrap();

    let mut older = setup.pool.begin().await.unwrap();
    sqlx::query("select pg_current_xact_id()").execute(&mut *older).await.unwrap();
    setup.run_json(&["campaign", "erase", going, "--yes"]).await;
    let waits = "select exists (select from pg_stat_activity
                         where datname = current_database() and query like '-- What keeps rows that were deleted%' and pid <> pg_backend_pid())";
    eventually("the vacuum waits for the transaction before it", async || {
        let waits = sqlx::query_scalar::<_, bool>(waits).fetch_one(&setup.pool).await.unwrap();
        waits.then_some(())
    })
    .await;
    let receipt = setup.run_json(&["campaign", "erase", going]).await;
    assert!(receipt["signed"].is_object() && receipt["vacuumed_at"].is_null(), "{receipt}");
    let early =
        "select count(*) from pg_stat_user_tables, dalsegno.erasures where last_vacuum >= ended_at";
    let early: i64 = sqlx::query_scalar(early).fetch_one(&setup.pool).await.unwrap();
    assert_eq!(early, 0, "a table is vacuumed while its deleted rows may be read");
    older.rollback().await.unwrap();
    let receipt = eventually("the receipt is signed, and then vacuumed", async || {
        let receipt = setup.run_json(&["campaign", "erase", going]).await;
        let is_done = receipt["signed"].is_object() && receipt["vacuumed_at"].is_string();
        is_done.then_some(receipt)
    })
    .await;
    for kind in ["messages", "tasks", "campaign"] {
        assert_eq!(receipt["contents"][kind], contents[kind], "{kind}: {receipt}");
    }
    assert_eq!(contents["tasks"]["rows"], TASKS);
    let left = "select relname::text from pg_stat_user_tables, dalsegno.erasures
                 where schemaname = 'dalsegno' and (last_vacuum is null or last_vacuum < ended_at)";
    eventually("all tables are vacuumed after the removal", async || {
        let left: Vec<String> = sqlx::query_scalar(left).fetch_all(&setup.pool).await.unwrap();
        left.is_empty().then_some(())
    })
    .await;

    let said = setup.run_json(&["erasure", "vacuum", "--full"]).await;
    assert_eq!(said["campaigns"], json!([going]));
    assert_eq!(setup.files_with(ERASED_WORD).await, Vec::<PathBuf>::new());
    assert!(!setup.files_with(KEPT_WORD).await.is_empty(), "the other campaign is unchanged");

    let receipt = setup.run_json(&["campaign", "erase", going]).await;
    assert!(receipt["rewritten_at"].is_string(), "{receipt}");
    let (code, said, error) = setup.verify(&receipt, &[]).await;
    assert_eq!((code, &said["valid"]), (0, &json!(true)), "{error}");
    let findings = setup.run(&["doctor"], &setup.url).await.1;
    let finding = findings.as_array().unwrap().iter().find(|one| one["check"] == "erasure_key");
    let key = receipt["signed"]["public_key"].as_str().unwrap();
    assert!(finding.unwrap()["what"].as_str().unwrap().contains(key), "{finding:?}");
    assert_eq!(setup.verify(&receipt, &["--public-key", key]).await.0, 0);
    let other = setup.verify(&receipt, &["--public-key", "AAAA"]).await;
    assert!(other.0 == 1 && other.2.contains("not by AAAA"), "{other:?}");
    let nowhere = ["--set", "erasures.key_file=none.pem"];
    let (code, said, _) = setup.verify(&receipt, &nowhere).await;
    assert_eq!(
        (code, &said["valid"]),
        (1, &Value::Null),
        "a receipt with another key was accepted"
    );
    assert_eq!(said["public_key"], key);
    let forged = resign_receipt(&receipt, &setup.folder.path().join("forger.pem"), None);
    let (code, _, error) = setup.verify(&forged, &[]).await;
    assert!(code == 1 && error.contains("the receipt is signed by"), "{error}");
    let typed = resign_receipt(&receipt, &setup.folder.path().join("forger.pem"), Some("other/1"));
    let (code, _, error) = setup.verify(&typed, &nowhere).await;
    assert!(code == 1 && error.contains("`type`"), "{error}");

    for (pointer, value, why) in [
        ("/contents/messages/rows", json!(1), "`contents`"),
        ("/ended_at", json!("2026-01-01T00:00:00Z"), "`ended_at`"),
        ("/signed/statement", json!("{}"), "signature"),
        ("/signed", Value::Null, "not signed"),
    ] {
        let mut changed = receipt.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        let (code, _, error) = setup.verify(&changed, &[]).await;
        assert!(code == 1 && error.contains(why), "{pointer}: {code} {error}");
    }

    let file = setup.folder.path().join(".dalsegno/erasure-key.pem");
    let pem = std::fs::read_to_string(file).unwrap();
    let secret = pem.lines().nth(1).unwrap();
    assert_eq!(tables_with(&setup.pool, secret).await, [], "a table contains the private key");
}
