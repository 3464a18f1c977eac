//! `dalsegno.add_task`, which other systems call in their own transactions: its rows and its refusals.

use dalsegno::domain::{
    agents::SessionMode as Mode,
    amount::Limit,
    campaign_control,
    task_files::attachments::NewAttachment,
    tasks::{self, New},
};
use serde_json::Value;
use sqlx::{PgConnection, postgres::PgDatabaseError};
use uuid::Uuid;

use super::{World, limits};
use crate::{app::noon, turns::fixture::Fixture};

/// Returns all rows of a task without ids and times.
async fn task_rows(conn: &mut PgConnection, task: Uuid) -> Value {
    let sql = "select jsonb_build_object(
                 'task', to_jsonb(t) - '{id,job_id,created_at}'::text[],
                 'job', to_jsonb(j) - '{id,lane_id,run_at,enqueued_at}'::text[],
                 'is_late', j.run_at > '2027-01-01',
                 'payload', p.payload, 'timeout', p.timeout_secs, 'headers', replace(p.headers::text, t.id::text, 'ID'),
                 'lane', (select to_jsonb(l) - '{id,created_at,used_at}'::text[] from dalsegno.lanes as l where l.id = j.lane_id),
                 'key', (select jsonb_agg(to_jsonb(i) - '{job_id,created_at}'::text[] order by i.key) from dalsegno.idempotency_keys as i where i.job_id = j.id),
                 'feed', (select jsonb_agg(to_jsonb(f) - '{id,created_at,task_id,written_by}'::text[]) from dalsegno.feed as f where f.task_id = t.id))
               from dalsegno.tasks as t join dalsegno.jobs as j on j.id = t.job_id join dalsegno.job_payloads as p on p.job_id = j.id
              where t.id = $1";
    sqlx::query_scalar(sql).bind(task).fetch_one(conn).await.unwrap()
}

/// Calls the function with arguments in SQL, after the campaign.
async fn call(
    conn: &mut PgConnection,
    campaign: Uuid,
    sql: &str,
) -> Result<(Uuid, bool), sqlx::Error> {
    let sql = format!("select task_id, created from dalsegno.add_task($1, {sql})");
    sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(campaign).fetch_one(conn).await
}

/// Returns the code of a refusal, and its text with the hint.
fn refused(result: Result<(Uuid, bool), sqlx::Error>) -> (String, String) {
    let error = result.unwrap_err();
    let error = error.as_database_error().unwrap().downcast_ref::<PgDatabaseError>();
    let words = format!("{}. {}", error.message(), error.hint().unwrap());
    (error.code().to_owned(), words)
}

#[tokio::test]
async fn rust_and_sql_add_the_same_task() {
    let world = World::new().await;
    let plain = world.ask("Part one.\nÄ \"quoted\" 'part'.");
    let full = New {
        instance: "second",
        session_mode: Some(Mode::Fresh),
        budget: Limit { micros: Some(5), tokens: Some(7) },
        idempotency_key: Some("order-1"),
        priority: Some(3),
        run_at: Some(noon() + chrono::TimeDelta::days(365)),
        ..plain
    };
    let money = New {
        budget: Limit { micros: None, tokens: Some(9) },
        session_mode: Some(Mode::None),
        ..plain
    };
    let in_sql = [
        (plain, "'copywriter', E'Part one.\\nÄ \"quoted\" ''part''.'"),
        (
            full,
            "'copywriter', E'Part one.\\nÄ \"quoted\" ''part''.', 'second', 'fresh', 5, 7, 'order-1', 3, '2027-11-20 12:00+00'",
        ),
        (
            money,
            "'copywriter', E'Part one.\\nÄ \"quoted\" ''part''.', session_mode => 'none', budget_tokens => 9",
        ),
    ];
    for (new, arguments) in in_sql {
        let mut tx = world.pool.begin().await.unwrap();
        let added = tasks::add(&mut tx, &limits(), &new, noon()).await.unwrap();
        let ours = task_rows(&mut tx, added.task.id).await;
        tx.rollback().await.unwrap();
        let mut tx = world.pool.begin().await.unwrap();
        let (id, created) = call(&mut tx, world.campaign.id, arguments).await.unwrap();
        assert!(created);
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(task_rows(&mut tx, id).await, ours, "{arguments}");
        tx.rollback().await.unwrap();
    }
}

#[tokio::test]
async fn a_key_has_the_same_input_digest_from_rust_and_sql() {
    let world = World::new().await;
    let ask = New { idempotency_key: Some("order-1"), ..world.ask("Part one.") };
    let first = world.add_new(&ask).await.unwrap().task;
    let mut conn = world.pool.acquire().await.unwrap();
    let again = "'copywriter', 'Part one.', idempotency_key => 'order-1'";
    assert_eq!(call(&mut conn, world.campaign.id, again).await.unwrap(), (first.id, false));
    let other = "'copywriter', 'Part two.', idempotency_key => 'order-1'";
    assert_eq!(refused(call(&mut conn, world.campaign.id, other).await).0, "DS409");
    let second = "'copywriter', 'Part two.', idempotency_key => 'order-2'";
    let (second, created) = call(&mut conn, world.campaign.id, second).await.unwrap();
    assert!(created);
    let ask = New { idempotency_key: Some("order-2"), ..world.ask("Part two.") };
    let found = world.add_new(&ask).await.unwrap();
    assert_eq!((found.task.id, found.created), (second, false));
    // Also after a retry has given it another job, and in a closed campaign.
    tasks::cancel(&mut conn, first.id, "x", noon()).await.unwrap();
    tasks::retry(&mut conn, first.id, noon()).await.unwrap();
    campaign_control::close(&mut conn, world.campaign.id, noon()).await.unwrap();
    assert_eq!(call(&mut conn, world.campaign.id, again).await.unwrap(), (first.id, false));
}

/// Returns the attachments of a task and the time for its answer.
async fn files_and_time(conn: &mut PgConnection, task: Uuid) -> Value {
    let sql = "select jsonb_build_array(t.within_secs, (select jsonb_agg(jsonb_build_array(a.position, a.name, a.sha256) order by a.position)
                                                          from dalsegno.task_attachments as a where a.task_id = t.id))
                 from dalsegno.tasks as t where t.id = $1";
    sqlx::query_scalar(sql).bind(task).fetch_one(conn).await.unwrap()
}

#[tokio::test]
async fn a_task_in_sql_has_the_files_and_the_time_of_one_from_rust() {
    let world = World::new().await;
    let upload = [NewAttachment::upload("notes.md", b"Low tide at six.".to_vec())];
    let source = world.add_new(&New { attachments: &upload, ..world.ask("Write them.") }).await;
    let source = source.unwrap().task.id;
    let reference = |name: Option<&str>| NewAttachment {
        name: name.map(str::to_owned),
        content: None,
        media_type: None,
        task: Some(source),
        file: Some("notes.md".to_owned()),
    };
    let attachments = [reference(None), reference(Some("tide \"ä\".md"))];
    let ask = New {
        idempotency_key: Some("order-1"),
        within_secs: Some(86_400),
        attachments: &attachments,
        ..world.ask("Read them.")
    };
    let first = world.add_new(&ask).await.unwrap().task.id;
    let mut conn = world.pool.acquire().await.unwrap();
    let campaign = world.campaign.id;
    let given = format!(
        r#"within_secs => 86400, attachments => '[{{"task": "{source}", "file": "notes.md"}}, {{"task": "{source}", "file": "notes.md", "name": "tide \"ä\".md"}}]'"#
    );
    let again = format!("'copywriter', 'Read them.', idempotency_key => 'order-1', {given}");
    assert_eq!(call(&mut conn, campaign, &again).await.unwrap(), (first, false));
    for (other, of) in [("86400", "3600"), ("notes.md", "note.md")] {
        let other = again.replacen(other, of, 1);
        assert_eq!(refused(call(&mut conn, campaign, &other).await).0, "DS409", "{other}");
    }
    let expected = files_and_time(&mut conn, first).await;
    assert_eq!((&expected[0], &expected[1][1][1]), (&86_400.into(), &"tide \"ä\".md".into()));
    for arguments in
        ["'copywriter', 'Read them.'", &format!("'copywriter', 'Then.', '{{{source}}}'::uuid[]")]
    {
        let (id, created) =
            call(&mut conn, campaign, &format!("{arguments}, {given}")).await.unwrap();
        assert!(created);
        assert_eq!(files_and_time(&mut conn, id).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn files_that_a_task_in_sql_cannot_have_are_refused_with_a_hint() {
    let world = World::new().await;
    let upload = [NewAttachment::upload("notes.md", b"Low tide at six.".to_vec())];
    let source = world.add_new(&New { attachments: &upload, ..world.ask("Write them.") }).await;
    let source = source.unwrap().task.id;
    let mut conn = world.pool.acquire().await.unwrap();
    let other = Uuid::from_u128(7);
    for sql in [
        "insert into dalsegno.campaigns (id, name) values ('00000000-0000-0000-0000-000000000007', 'Other')",
        "insert into dalsegno.file_contents (n_bytes, stored_at, sha256, media_type, content) values (2, now(), sha256('PK'), 'application/zip', 'PK')",
        "insert into dalsegno.task_files (stored_at, turn, task_id, sha256, name, problem)
           select now(), 1, id, f.sha256, f.name, f.problem
             from dalsegno.tasks, (values (sha256('PK'), 'a.zip', null), (null, 'long.bin', 'it is too long')) as f (sha256, name, problem)",
    ] {
        sqlx::query(sql).execute(&mut *conn).await.unwrap();
    }
    let file = |name: &str| format!(r#"[{{"task": "{source}", "file": "{name}"}}]"#);
    let named =
        |name: &str| format!(r#"[{{"task": "{source}", "file": "notes.md", "name": "{name}"}}]"#);
    let notes = file("notes.md");
    let twice = format!("{}, {}", &notes[..notes.len() - 1], &notes[1..]);
    let cases = [
        (world.campaign.id, file("note.md"), "DS404", "has no file `note.md` to attach"),
        (other, notes.clone(), "DS404", "has no file `notes.md` to attach"),
        (world.campaign.id, file("a.zip"), "DS400", "`a.zip` seems to be application/zip"),
        (world.campaign.id, file("long.bin"), "DS400", "is not stored: it is too long"),
        (world.campaign.id, twice, "DS400", "two attachments are named `notes.md`"),
        (world.campaign.id, named("a/b"), "DS400", "a name that cannot be used"),
        (world.campaign.id, named(r"a\nb"), "DS400", "a name that cannot be used"),
        (world.campaign.id, named(r"a\u202eb"), "DS400", "a name that cannot be used"),
        (world.campaign.id, named(".."), "DS400", "a name that cannot be used"),
        (world.campaign.id, "{}".to_owned(), "DS400", "not a JSON array"),
        (
            world.campaign.id,
            r#"[{"name": "a", "content": "YQ=="}]"#.to_owned(),
            "DS400",
            "attachment 1 does not name a file",
        ),
        (
            world.campaign.id,
            notes.replace(&source.to_string(), "7"),
            "DS400",
            "attachment 1 does not name a file",
        ),
    ];
    for (campaign, attachments, code, words) in cases {
        let arguments = format!("'copywriter', 'x', attachments => '{attachments}'");
        let (got, said) = refused(call(&mut conn, campaign, &arguments).await);
        assert_eq!(got, code, "{arguments}: {said}");
        assert!(said.contains(words), "{arguments}: {said}");
    }
    let arguments = format!("'copywriter', 'x', attachments => '{notes}'");
    for (setting, code, words) in [
        ("max_attachments = 0", "DS400", "at most 0 are allowed"),
        ("max_attachment_bytes = 15", "DS413", "has 16 bytes, and at most 15"),
        ("max_attachments_bytes = 15", "DS413", "it has 16 bytes of attachments, and at most 15"),
    ] {
        let mut tx = world.pool.begin().await.unwrap();
        let setting = format!("set local dalsegno.{setting}");
        sqlx::query(sqlx::AssertSqlSafe(setting)).execute(&mut *tx).await.unwrap();
        let (got, said) = refused(call(&mut tx, world.campaign.id, &arguments).await);
        assert_eq!(got, code, "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn a_rolled_back_task_never_existed() {
    let world = World::new().await;
    let mut tx = world.pool.begin().await.unwrap();
    let (id, _) = call(&mut tx, world.campaign.id, "'copywriter', 'Part one.'").await.unwrap();
    tx.rollback().await.unwrap();
    let mut conn = world.pool.acquire().await.unwrap();
    assert!(matches!(tasks::get(&mut *conn, id).await, Err(tasks::Error::Unknown(_))));
    let sql = "select count(*) from dalsegno.jobs";
    assert_eq!(sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut *conn).await.unwrap(), 0);
}

#[tokio::test]
async fn an_invalid_task_is_refused_with_a_hint() {
    let world = World::with_limit(Limit { micros: None, tokens: Some(10) }).await;
    let mut conn = world.pool.acquire().await.unwrap();
    let campaign = world.campaign.id;
    let cases = [
        ("'copywriter', ''", "DS400", "prompt is empty"),
        ("'copywriter', E' \\n\\t'", "DS400", "prompt is empty"),
        ("'copywriter', null", "DS400", "prompt is empty"),
        ("'copywriter', repeat('ä', 131073)", "DS413", "262146 bytes"),
        ("'Copy Writer', 'x'", "DS400", "not a valid name of an agent"),
        ("null, 'x'", "DS400", "not a valid name of an agent"),
        ("'copywriter', 'x', 'A/b'", "DS400", "not a valid name of an instance"),
        ("'copywriter', 'x', session_mode => 'new'", "DS400", "continue, fresh or none"),
        ("'copywriter', 'x', budget_tokens => 0", "DS400", "the budget must be more than 0"),
        ("'copywriter', 'x', idempotency_key => ''", "DS400", "idempotency_key"),
        ("'copywriter', 'x', priority => -1", "DS400", "priority"),
        ("'copywriter', 'x', within_secs => 3599", "DS400", "may not take 3599 s"),
        (
            "'copywriter', 'x', '{}'::uuid[], within_secs => 604801",
            "DS400",
            "may not take 604801 s",
        ),
    ];
    for (arguments, code, words) in cases {
        let (got, said) = refused(call(&mut conn, campaign, arguments).await);
        assert_eq!(got, code, "{arguments}: {said}");
        assert!(said.contains(words), "{arguments}: {said}");
    }
    let longest = "'copywriter', repeat('ä', 131072)";
    let mut tx = world.pool.begin().await.unwrap();
    call(&mut tx, campaign, longest).await.unwrap();
    tx.rollback().await.unwrap();
    let (code, said) = refused(call(&mut conn, Uuid::nil(), "'copywriter', 'x'").await);
    assert_eq!(code, "DS404", "{said}");
    sqlx::query("update dalsegno.campaign_budgets set spent_tokens = 10, on_limit = 'fail'")
        .execute(&mut *conn)
        .await
        .unwrap();
    let (code, said) = refused(call(&mut conn, campaign, "'copywriter', 'x'").await);
    assert!(code == "DS409" && said.contains("campaign budget"), "{said}");
    campaign_control::close(&mut conn, campaign, noon()).await.unwrap();
    let (code, said) = refused(call(&mut conn, campaign, "'copywriter', 'x'").await);
    assert!(code == "DS409" && said.contains("closed"), "{said}");
}

/// Runs the example of `docs/how-to/enqueue.md`.
#[tokio::test]
async fn a_role_without_rights_adds_tasks_through_a_security_definer_function() {
    let world = World::new().await;
    let page = include_str!("../../../docs/how-to/enqueue.md");
    let shown = page.split("create function public.ask_copywriter").nth(1).unwrap();
    let shown = shown.split("```").next().unwrap();
    let role = format!("orders_{}", Uuid::new_v4().simple());
    let mut tx = world.pool.begin().await.unwrap();
    // All of it is rolled back with the transaction, the role too.
    let set_up = format!(
        "create role {role}; create function public.ask_copywriter{shown}; set local role {role}"
    );
    let set_up = set_up.replace("to orders;", &format!("to {role};"));
    sqlx::raw_sql(sqlx::AssertSqlSafe(set_up)).execute(&mut *tx).await.unwrap();
    sqlx::raw_sql("savepoint before").execute(&mut *tx).await.unwrap();
    let refused = call(&mut tx, world.campaign.id, "'copywriter', 'x'").await.unwrap_err();
    assert!(refused.to_string().contains("permission denied"), "{refused}");
    sqlx::raw_sql("rollback to before").execute(&mut *tx).await.unwrap();
    let ask = "select public.ask_copywriter($1, 'Part one.', 'order-1')";
    let id: Uuid =
        sqlx::query_scalar(ask).bind(world.campaign.id).fetch_one(&mut *tx).await.unwrap();
    sqlx::raw_sql("reset role").execute(&mut *tx).await.unwrap();
    assert_eq!(tasks::get(&mut *tx, id).await.unwrap().prompt, "Part one.");
    tx.rollback().await.unwrap();
}

#[tokio::test]
async fn a_worker_runs_tasks_added_in_sql_and_reports_an_unknown_agent() {
    let fixture = Fixture::new(&[]).await;
    let mut conn = fixture.pool.acquire().await.unwrap();
    let campaign = fixture.campaign.id;
    let (fine, _) = call(&mut conn, campaign, "'writer', 'Write.'").await.unwrap();
    let (unknown, _) = call(&mut conn, campaign, "'stranger', 'Write.'").await.unwrap();
    let worker = fixture.start_worker().await;
    fixture.done(&tasks::get(&mut *conn, fine).await.unwrap()).await;
    let failed = fixture.ended(&tasks::get(&mut *conn, unknown).await.unwrap()).await;
    let words = failed.error.unwrap();
    assert!(words.contains("stranger"), "{words}");
    worker.stop().await;
}
