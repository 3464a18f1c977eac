//! The schema: comments, constraint names, migrations with sample data, repeated and concurrent runs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use dalsegno::db::{self, MigrationState, constraint};
use sha2::{Digest as _, Sha256};
use sqlx::PgPool;

use crate::app::{TestDatabase, eventually, execute};

/// Returns the file `tests/data/migrations/<version>.sql`, which is loaded after its migration, so that the next one
/// meets rows.
fn sample_data(migration: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/migrations");
    folder.join(version_of(migration).to_string()).with_extension("sql")
}

fn migrations() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

async fn names(pool: &PgPool, sql: &'static str) -> Vec<String> {
    sqlx::query_scalar(sql).fetch_all(pool).await.unwrap()
}

#[tokio::test]
async fn each_migration_works_on_the_data_of_the_previous_one() {
    with_sample_rows().await;
}

/// Creates a database with the current schema, and the sample rows of all migrations.
pub async fn with_sample_rows() -> (TestDatabase, PgPool) {
    let database = TestDatabase::empty().await;
    let pool = database.pool().await;
    sqlx::query("create schema dalsegno").execute(&pool).await.unwrap();
    for migration in migrations() {
        let sample = std::fs::read_to_string(sample_data(&migration));
        let sample =
            sample.unwrap_or_else(|_| panic!("{} is missing", sample_data(&migration).display()));
        for sql in [std::fs::read_to_string(&migration).unwrap(), sample] {
            let ran = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await;
            ran.unwrap_or_else(|error| panic!("{}: {error}", migration.display()));
        }
    }
    // Written by the migrator, which would not stop between two migrations.
    let known = db::status(&pool).await.unwrap().into_iter().map(|step| step.version);
    let record = "create table dalsegno.migrations (version bigint primary key, description text not null default '',
         installed_on timestamptz not null default now(), success boolean not null default true, checksum bytea not null default '',
         execution_time bigint not null default 0)";
    execute(&database.options, record).await;
    let insert = "insert into dalsegno.migrations (version) select * from unnest($1::bigint[])";
    sqlx::query(insert).bind(known.collect::<Vec<_>>()).execute(&pool).await.unwrap();
    (database, pool)
}

/// Databases store the checksum of an applied migration, and refuse to start with a different one.
#[test]
fn a_released_migration_is_not_edited() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/migrations/checksums");
    let list = std::fs::read_to_string(list).unwrap();
    let mut landed: BTreeMap<&str, &str> =
        list.lines().map(|line| line.split_once("  ").unwrap()).map(|(a, b)| (b, a)).collect();
    let mut new = String::new();
    for path in migrations() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let digest = hex::encode(Sha256::digest(std::fs::read(&path).unwrap()));
        match landed.remove(name) {
            Some(known) => assert_eq!(
                known, digest,
                "{name} was edited: write a new migration; if it is not merged yet, remove its line from the list first"
            ),
            None => new.push_str(&format!("{digest}  {name}\n")),
        }
    }
    assert!(landed.is_empty(), "merged migrations that are missing: {landed:?}");
    assert!(
        new.is_empty(),
        "add to tests/data/migrations/checksums, as scripts/sqlx-prepare does:\n{new}"
    );
}

/// Otherwise writers of the table wait until its index is built.
#[test]
fn indexes_on_existing_tables_are_built_concurrently() {
    for path in migrations() {
        let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
        for (table, is_beside) in new_indexes(&text) {
            let is_new = text.contains(&format!("create table dalsegno.{table} "));
            let is_beside = is_beside && text.starts_with("-- no-transaction");
            assert!(
                is_new || is_beside,
                "{}: index {table} with `create index concurrently`, alone in a file that begins with `-- no-transaction`",
                path.display()
            );
        }
    }
}

/// Returns the tables that get an index, each with whether it is built concurrently.
fn new_indexes(text: &str) -> Vec<(String, bool)> {
    // Comments may contain semicolons.
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let text = lines.collect::<Vec<_>>().join(" ");
    let statements = text.split(';').map(str::trim_start);
    let indexes = statements.filter(|statement| {
        statement.starts_with("create index ") || statement.starts_with("create unique index ")
    });
    let of = |statement: &str| {
        let (_, table) = statement.split_once(" on dalsegno.").unwrap();
        let table = table.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
        (table.to_owned(), statement.contains(" index concurrently "))
    };
    indexes.map(of).collect()
}

#[test]
fn indexes_are_parsed_with_their_tables() {
    let text = "-- no-transaction\n-- Why; and how.\ncreate unique index concurrently a on dalsegno.tasks (b);\n\
                create index c\n  on dalsegno.jobs (d) where e;\ncomment on index dalsegno.c is 'create index f';";
    let found = new_indexes(text);
    assert_eq!(found, [("tasks".to_owned(), true), ("jobs".to_owned(), false)]);
}

/// A required column without a default breaks the inserts of the older binary.
#[test]
fn added_not_null_columns_have_a_default() {
    for path in migrations() {
        let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
        for clause in added_columns(&text) {
            let fine = !clause.contains("not null") || clause.contains("default");
            assert!(fine, "{}: {clause}", path.display());
        }
    }
}

/// Returns the clause of each `add column`, up to the comma or semicolon that ends it, outside of parentheses.
fn added_columns(text: &str) -> Vec<String> {
    let clause = |added: &str| {
        let mut depth = 0;
        let within = |c: &char| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth > 0 || !matches!(c, ',' | ';')
        };
        added.chars().take_while(within).collect()
    };
    text.split("add column ").skip(1).map(clause).collect()
}

#[test]
fn a_comma_within_a_type_does_not_end_a_column() {
    let found =
        added_columns("alter table t add column a numeric(10,2) not null, add column b int;");
    assert_eq!(found, ["a numeric(10,2) not null", "b int"]);
}

#[tokio::test]
async fn concurrent_and_repeated_migrations_succeed() {
    let database = TestDatabase::empty().await;
    let pool = database.pool().await;
    let n_all = db::status(&pool).await.unwrap().len();
    let state = db::migration_state(&pool).await.unwrap();
    assert_eq!(state, MigrationState::Pending { n_pending: n_all });
    let (a, b, c) = tokio::join!(db::migrate(&pool), db::migrate(&pool), db::migrate(&pool));
    a.and(b).and(c).unwrap();
    assert_eq!(db::migration_state(&pool).await.unwrap(), MigrationState::Current);
}

/// History of a service that was built before the current series of migrations.
const OLDER: &str = "
    create schema dalsegno;
    create table dalsegno.migrations (version bigint primary key, description text not null, installed_on timestamptz not null default now(),
      success boolean not null, checksum bytea not null, execution_time bigint not null);
    insert into dalsegno.migrations (version, description, success, checksum, execution_time)
    values (20261120120000, 'create installation', true, '', 0), (20261212110000, 'sign erasures', true, '', 0)";

#[tokio::test]
async fn a_database_with_older_migrations_is_refused_and_left_unchanged() {
    let database = TestDatabase::empty().await;
    let pool = database.pool().await;
    sqlx::raw_sql(OLDER).execute(&pool).await.unwrap();
    let refused = [
        db::migrate(&pool).await.unwrap_err(),
        db::wait_for_schema(&pool).await.unwrap_err(),
        db::migration_state(&pool).await.unwrap_err(),
        db::status(&pool).await.unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, db::Error::OlderSchema { n_older: 2, newest: 20261212110000, .. }));
        let text = error.to_string();
        assert!(
            text.contains("cannot be upgraded: it has 2 migrations up to 20261212110000"),
            "{text}"
        );
        assert!(text.contains("create a new database and set DATABASE_URL to it"), "{text}");
    }
    let tables = "select relname::text from pg_class where relnamespace = 'dalsegno'::regnamespace and relkind = 'r'";
    assert_eq!(names(&pool, tables).await, ["migrations"]);
}

/// The situation of a deployment: a client of the older schema has locked one table and waits for another, which the
/// migration has locked.
#[tokio::test]
async fn a_migration_that_meets_a_lock_is_retried() {
    let database = TestDatabase::empty().await;
    let pool = database.pool().await;
    migrate_to(&pool, version_before("webhooks")).await;
    let mut turn = pool.begin().await.unwrap();
    // Makes Postgres abort the migration in a deadlock.
    let begins =
        "set local deadlock_timeout = '10min'; lock table dalsegno.tasks in row exclusive mode";
    sqlx::raw_sql(begins).execute(&mut *turn).await.unwrap();
    let others = pool.clone();
    let migrating = tokio::spawn(async move { db::migrate(&others).await });
    let waits =
        "select count(*) from pg_locks where relation = 'dalsegno.tasks'::regclass and not granted";
    eventually("the migration waits for the turn", async || {
        let n: i64 = sqlx::query_scalar(waits).fetch_one(&pool).await.unwrap();
        (n == 1).then_some(())
    })
    .await;
    let goes_on = "lock table dalsegno.campaigns in row exclusive mode";
    sqlx::raw_sql(goes_on).execute(&mut *turn).await.unwrap();
    let applied = db::status(&pool).await.unwrap().iter().filter(|step| step.applied).count();
    assert!(
        applied < db::status(&pool).await.unwrap().len(),
        "Postgres did not abort the migration"
    );
    turn.commit().await.unwrap();
    migrating.await.unwrap().unwrap();
    assert_eq!(db::migration_state(&pool).await.unwrap(), MigrationState::Current);
}

/// A long transaction has locked a table: the migration must not queue for it and block later clients.
#[tokio::test]
async fn a_migration_that_waits_for_a_long_transaction_blocks_no_other() {
    let database = TestDatabase::empty().await;
    let pool = database.pool().await;
    migrate_to(&pool, version_before("webhooks")).await;
    let mut long = pool.begin().await.unwrap();
    let writes = "lock table dalsegno.tasks in row exclusive mode";
    sqlx::raw_sql(writes).execute(&mut *long).await.unwrap();
    let others = pool.clone();
    let migrating = tokio::spawn(async move { db::migrate(&others).await });
    // Turns get their lock while the migration waits and retries.
    let turn = "set local lock_timeout = '5s'; lock table dalsegno.tasks in row exclusive mode";
    let waits =
        "select count(*) from pg_locks where relation = 'dalsegno.tasks'::regclass and not granted";
    for _ in 0..3 {
        eventually("the migration waits", async || {
            let n: i64 = sqlx::query_scalar(waits).fetch_one(&pool).await.unwrap();
            (n == 1).then_some(())
        })
        .await;
        let mut tx = pool.begin().await.unwrap();
        sqlx::raw_sql(turn).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert!(!migrating.is_finished());
    long.commit().await.unwrap();
    migrating.await.unwrap().unwrap();
    assert_eq!(db::migration_state(&pool).await.unwrap(), MigrationState::Current);
}

/// Objects that an older binary names stay after each migration, so that it runs on newer schemas. Columns do not
/// change their type or become required; functions keep their parameters.
#[tokio::test]
async fn no_migration_removes_or_changes_names_that_an_older_binary_uses() {
    let database = TestDatabase::empty().await;
    let pool = database.pool().await;
    let mut before: Vec<String> = Vec::new();
    for migration in migrations() {
        migrate_to(&pool, version_of(&migration)).await;
        let after = names(&pool, NAMED).await;
        assert!(after.len() > 3, "{after:?}");
        let lost: Vec<_> = before.iter().filter(|name| !after.contains(name)).collect();
        let renames = version_of(&migration) == RENAMES_CREDENTIALS;
        assert!(lost.is_empty() || renames, "{}: {lost:#?}", migration.display());
        before = after;
    }
    assert!(before.len() > 400, "{}", before.len());
}

/// The one migration that renames columns, before the first release: older processes are stopped before it.
const RENAMES_CREDENTIALS: i64 = 20261217000100;

/// Columns with their types, and whether an insert may omit them; functions with the types of all calls that name no
/// more arguments than an older binary knew, and their results.
const NAMED: &str = "
    select format('%s.%s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod))
      from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'dalsegno'::regnamespace and c.relkind in ('r', 'p', 'v')
    union all
    select format('%s may be written without %s', c.relname, a.attname)
      from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'dalsegno'::regnamespace and c.relkind in ('r', 'p') and (not a.attnotnull or a.atthasdef or a.attidentity <> '')
    union all
    select format('%s(%s) gives %s', p.proname,
                  (select string_agg(format_type(t.oid, null), ', ' order by t.place)
                     from unnest(p.proargtypes) with ordinality as t (oid, place) where t.place <= n), column_)
      from pg_proc as p,
           generate_series(p.pronargs::int - p.pronargdefaults::int, p.pronargs::int) as n,
           unnest(array[format_type(p.prorettype, null)]
                  || array(select p.proargnames[i] from generate_series(1, coalesce(cardinality(p.proargmodes), 0)) as i
                            where p.proargmodes[i] in ('o', 't'))) as column_
     where p.pronamespace = 'dalsegno'::regnamespace and p.prorettype <> 'trigger'::regtype and p.prokind = 'f'
     order by 1";

/// Returns the version before the migration with this name, so that the named one is next.
fn version_before(name: &str) -> i64 {
    let all = migrations();
    let named = format!("_{name}.sql");
    let place = all.iter().position(|path| path.to_str().unwrap().ends_with(&named)).unwrap();
    version_of(&all[place - 1])
}

fn version_of(migration: &Path) -> i64 {
    let name = migration.file_stem().unwrap().to_str().unwrap();
    name.split_once('_').unwrap().0.parse().unwrap()
}

async fn migrate_to(pool: &PgPool, version: i64) {
    let mut migrator = sqlx::migrate!();
    migrator.create_schema("dalsegno");
    migrator.dangerous_set_table_name("dalsegno.migrations");
    migrator.run_to(version, pool).await.unwrap();
}

#[tokio::test]
async fn all_objects_are_in_the_schema_dalsegno() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let outside = "select n.nspname || '.' || c.relname from pg_class c
                   join pg_namespace n on n.oid = c.relnamespace
                   where n.nspname not in ('dalsegno', 'pg_catalog', 'information_schema', 'pg_toast')";
    assert_eq!(names(&pool, outside).await, Vec::<String>::new());
    let functions =
        "select p.proname::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                     where n.nspname = 'public'";
    assert_eq!(names(&pool, functions).await, Vec::<String>::new());
}

#[tokio::test]
async fn every_table_has_a_comment() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let bare = "select relname::text from pg_class
                where relnamespace = 'dalsegno'::regnamespace and relkind in ('r', 'p', 'v')
                  and relname <> 'migrations' and not relispartition
                  and obj_description(oid, 'pg_class') is null";
    assert_eq!(names(&pool, bare).await, Vec::<String>::new());
}

/// Each constraint has a message for the user who violates it, or is listed as internal.
#[tokio::test]
async fn every_constraint_has_a_message_or_is_internal() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let all = "select conname::text from pg_constraint
               where connamespace = 'dalsegno'::regnamespace and contype in ('c', 'u', 'f', 'p', 'x')
                 and conrelid <> 'dalsegno.migrations'::regclass";
    let mut constraints = names(&pool, all).await;
    assert!(!constraints.is_empty());
    // Constraints reported by triggers.
    let reported = "select (regexp_matches(prosrc, $$then '([a-z_]+)'$$, 'g'))[1] from pg_proc
                    where pronamespace = 'dalsegno'::regnamespace and prosrc like '%raise check_violation%'";
    constraints.extend(names(&pool, reported).await);
    for name in &constraints {
        let known = constraint::INTERNAL.contains(&name.as_str())
            || constraint::USER_MISTAKES.iter().any(|mistake| mistake.constraint == name);
        assert!(known, "{name} is neither in WORDS nor in INTERNAL of src/db/constraint/");
    }
    let listed = constraint::USER_MISTAKES.iter().map(|mistake| mistake.constraint);
    for name in listed.chain(constraint::INTERNAL.iter().copied()) {
        assert!(
            constraints.iter().any(|known| known == name),
            "{name} is not a constraint any more"
        );
    }
}
