//! The blackboard, the shared JSON document of a campaign.

use dalsegno::domain::{
    agents::Agent,
    blackboard::{self, Change, ChangeAuthor, Error, Grants, Path, WriteOutcome},
    feed,
};
use futures_util::future::join_all;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};
use uuid::Uuid;

use super::feed_kinds::assert_described;
use crate::{app::noon, conversations::world::World};

const OPERATOR: ChangeAuthor<'static> = ChangeAuthor::Operator { label: "cli:ann@host" };

async fn change(
    world: &World,
    change: &Change<'_>,
    by: &ChangeAuthor<'_>,
) -> Result<WriteOutcome, Error> {
    let mut tx = world.pool.begin().await.unwrap();
    let written = blackboard::change(&mut tx, world.campaign.id, change, by, noon()).await?;
    tx.commit().await.unwrap();
    Ok(written)
}

async fn set(
    world: &World,
    document: &Value,
    expected_version: i64,
) -> Result<WriteOutcome, Error> {
    change(world, &Change::Set { document, expected_version }, &OPERATOR).await
}

async fn patch(world: &World, patch: &Value, by: &ChangeAuthor<'_>) -> Result<WriteOutcome, Error> {
    change(world, &Change::Patch { patch, expected_version: None }, by).await
}

async fn at_version(world: &World, version: i64) -> Result<Value, Error> {
    let mut conn = world.pool.acquire().await.unwrap();
    blackboard::at_version(&mut conn, world.campaign.id, version).await.map(|read| read.document)
}

fn paths(paths: &[&str]) -> Vec<Path> {
    paths.iter().map(|path| Path::parse(path).unwrap()).collect()
}

fn granted(world: &World, read: &[&str], write: &[&str]) -> Agent {
    let mut agent = world.agent().clone();
    agent.grants.blackboard = Grants { read: paths(read), write: paths(write) };
    agent
}

fn by(agent: &Agent) -> ChangeAuthor<'_> {
    ChangeAuthor::Agent { agent, instance: "main", task_id: Uuid::from_u128(7), turn: 3 }
}

/// Reads the document, adds one and replaces it, until no other writer has changed it in between.
async fn count_up(world: &World) {
    loop {
        let read = blackboard::get(&world.pool, world.campaign.id).await.unwrap();
        let mut document = read.document;
        document["n"] = json!(document["n"].as_i64().unwrap_or(0) + 1);
        match set(world, &document, read.version).await {
            Ok(_) => return,
            Err(Error::Version { expected, current }) => assert!(current > expected),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn concurrent_writers_lose_no_change() {
    const WRITERS: usize = 12;
    const CHANGES: usize = 15;
    let world = World::new().await;
    let writers = (0..WRITERS).map(async |writer| {
        for number in 0..CHANGES {
            let change =
                json!({ "by": { format!("writer-{writer}"): { format!("{number}"): number } } });
            patch(&world, &change, &OPERATOR).await.unwrap();
            if number % 5 == 0 {
                count_up(&world).await;
            }
        }
    });
    join_all(writers).await;
    let read = blackboard::get(&world.pool, world.campaign.id).await.unwrap();
    let n_counted = WRITERS * CHANGES.div_ceil(5);
    assert_eq!(read.document["n"], json!(n_counted));
    assert_eq!(read.version, i64::try_from(WRITERS * CHANGES + n_counted).unwrap());
    for writer in 0..WRITERS {
        let written = read.document["by"][format!("writer-{writer}")].as_object().unwrap();
        assert_eq!(written.len(), CHANGES, "{written:?}");
    }
    assert_eq!(at_version(&world, read.version).await.unwrap(), read.document);
    // Each change has one event and one history entry.
    let all = feed::Filter { campaign_id: None, after: 0, up_to: i64::MAX, limit: 10_000 };
    let events = feed::list(&world.pool, all).await.unwrap();
    assert_described(&events);
    let mut told: Vec<i64> = events
        .iter()
        .filter(|event| event.kind == "blackboard.changed")
        .map(|event| event.data["version"].as_i64().unwrap())
        .collect();
    told.sort_unstable();
    assert_eq!(told, (1..=read.version).collect::<Vec<_>>());
}

/// Generates small documents over a few keys that are parts of each other, so that changes overlap.
fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i8>().prop_map(Value::from),
        "[a-z<&\"]{0,4}".prop_map(Value::from)
    ];
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            fields(inner).prop_map(Value::from),
        ]
    });
    fields(value).prop_map(Value::from)
}

fn fields(
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = serde_json::Map<String, Value>> {
    let key = prop::sample::select(vec!["a", "ab", "a/b", "~", "b"]).prop_map(str::to_owned);
    prop::collection::vec((key, value), 0..4).prop_map(|fields| fields.into_iter().collect())
}

fn some_paths() -> impl Strategy<Value = Vec<&'static str>> {
    let path = prop::sample::select(vec![
        "/", "/", "/a", "/ab", "/a/b", "/a/a", "/a~1b", "/~0", "/b", "/b/ab",
    ]);
    prop::collection::vec(path, 0..4)
}

/// Returns the value at a path, or nothing inside of a value that is not an object.
fn value_at<'v>(document: &'v Value, path: &Path) -> Option<&'v Value> {
    let pointer = match path.to_string() {
        root if root == "/" => String::new(),
        path => path,
    };
    // `pointer` goes into arrays, unlike the path of a grant.
    pointer.split('/').skip(1).try_fold(document, |at, key| {
        at.as_object()?.get(&key.replace("~1", "/").replace("~0", "~"))
    })
}

/// Compares random changes of random writers with a model. Values without a write grant stay, values without a read
/// grant are missing in answers, refused changes have no effect, and each version can be read again.
#[test]
fn an_agent_reads_and_writes_only_the_paths_granted_by_its_file() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let world = runtime.block_on(World::new());
    let mut runner = TestRunner::new(ProptestConfig::with_cases(150));
    let versions = tokio::sync::Mutex::new(vec![json!({})]);
    let (n_written, n_refused) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let changes =
        prop::collection::vec((documents(), any::<bool>(), some_paths(), some_paths()), 1..8);
    runner
        .run(&changes, |changes| {
            runtime.block_on(async {
                for (content, is_patch, read, write) in changes {
                    let mut versions = versions.lock().await;
                    let before = versions.last().unwrap().clone();
                    let version = i64::try_from(versions.len() - 1).unwrap();
                    let agent = granted(&world, &read, &write);
                    let change = match is_patch {
                        true => Change::Patch { patch: &content, expected_version: None },
                        false => Change::Set { document: &content, expected_version: version },
                    };
                    let outcome = super::blackboard::change(&world, &change, &by(&agent)).await;
                    let now = blackboard::get(&world.pool, world.campaign.id).await.unwrap();
                    match outcome {
                        Ok(written) => {
                            n_written.set(n_written.get() + 1);
                            // Values without a grant are unchanged.
                            for place in [
                                "/a", "/ab", "/a/b", "/a/a", "/a~1b", "/~0", "/b", "/b/ab", "/a/ab",
                            ] {
                                let place = Path::parse(place).unwrap();
                                let touches = paths(&write)
                                    .iter()
                                    .any(|it| it.covers(&place) || place.covers(it));
                                if !touches {
                                    prop_assert_eq!(
                                        value_at(&before, &place),
                                        value_at(&now.document, &place)
                                    );
                                }
                            }
                            let shown = agent.grants.blackboard.readable_parts(&now.document);
                            prop_assert_eq!(
                                &written.blackboard.document,
                                &shown.unwrap_or(json!({}))
                            );
                            if written.changed {
                                versions.push(now.document.clone());
                            }
                        }
                        Err(Error::NotGranted { path, .. }) => {
                            n_refused.set(n_refused.get() + 1);
                            prop_assert!(!agent.grants.blackboard.may_write(&path));
                            prop_assert_eq!(&now.document, &before);
                        }
                        Err(error) => panic!("{error}"),
                    }
                    prop_assert_eq!(now.version, i64::try_from(versions.len() - 1).unwrap());
                }
                Ok(())
            })
        })
        .unwrap();
    let versions = versions.into_inner();
    println!(
        "{} written, {} refused, {} versions",
        n_written.get(),
        n_refused.get(),
        versions.len()
    );
    assert!(n_refused.get() > 20 && versions.len() > 40, "too few cases changed anything");
    runtime.block_on(async {
        for (version, document) in versions.iter().enumerate() {
            assert_eq!(
                &at_version(&world, i64::try_from(version).unwrap()).await.unwrap(),
                document,
                "{version}"
            );
        }
        let beyond = i64::try_from(versions.len()).unwrap();
        assert!(matches!(at_version(&world, beyond).await, Err(Error::NoVersion { .. })));
    });
}

#[tokio::test]
async fn an_empty_patch_leaves_no_change() {
    let world = World::new().await;
    let written = patch(&world, &json!({}), &OPERATOR).await.unwrap();
    assert!(!written.changed);
    let read = blackboard::get(&world.pool, world.campaign.id).await.unwrap();
    for blackboard in [written.blackboard, read] {
        assert_eq!((blackboard.version, blackboard.changed_at), (0, None));
    }
    patch(&world, &json!({ "n": 1 }), &OPERATOR).await.unwrap();
    let read = blackboard::get(&world.pool, world.campaign.id).await.unwrap();
    assert_eq!((read.version, read.changed_at), (1, Some(noon())));
}

#[tokio::test]
async fn a_grant_covers_its_path_and_not_names_with_the_same_prefix() {
    let world = World::new().await;
    let document = json!({ "plan": { "parts": 10, "partsman": "x" }, "planning": "secret" });
    set(&world, &document, 0).await.unwrap();
    let agent = granted(&world, &["/plan/parts"], &["/plan/parts", "/reviews/harbour"]);
    let agent = by(&agent);
    for refused in [
        json!({ "planning": "mine" }),
        json!({ "plan": { "partsman": "y" } }),
        json!({ "plan": null }),
        json!({ "plan": 1 }),
        json!({ "plan": { "parts": 11, "partsman": null } }),
        json!({ "reviews": {} }),
        json!({ "reviews": { "harbour": 1, "harbourmaster": 1 } }),
    ] {
        let error = patch(&world, &refused, &agent).await.unwrap_err();
        assert!(matches!(error, Error::NotGranted { .. }), "{refused}: {error}");
    }
    // Setting the document as the agent sees it would delete the parts that it does not see.
    let seen = json!({ "plan": { "parts": 11 } });
    let whole = Change::Set { document: &seen, expected_version: 1 };
    let error = change(&world, &whole, &agent).await.unwrap_err();
    assert!(error.to_string().contains("may not write /plan/partsman"), "{error}");
    let line = r#"write: ["/plan/parts","/reviews/harbour","/plan/partsman"] }` in "#;
    assert!(error.to_string().contains(line), "{error}");
    let written = patch(&world, &json!({ "plan": { "parts": 11 } }), &agent).await.unwrap();
    assert_eq!((written.blackboard.version, &written.blackboard.document), (2, &seen));
    // The objects around a value are created with it.
    patch(&world, &json!({ "reviews": { "harbour": "fine" } }), &agent).await.unwrap();
    let said_again =
        patch(&world, &json!({ "reviews": { "harbour": "fine" } }), &agent).await.unwrap();
    assert_eq!((said_again.changed, said_again.blackboard.version), (false, 3));
    let now = blackboard::get(&world.pool, world.campaign.id).await.unwrap().document;
    assert_eq!(
        now,
        json!({ "plan": { "parts": 11, "partsman": "x" }, "planning": "secret", "reviews": { "harbour": "fine" } })
    );
    let history = blackboard::history(&world.pool, world.campaign.id, None, 10).await.unwrap();
    let told: Vec<_> =
        history.iter().map(|it| (it.actor.as_str(), it.turn, it.paths.join(" "))).collect();
    assert_eq!(
        told,
        [
            ("copywriter/main", Some(3), "/reviews/harbour".to_owned()),
            ("copywriter/main", Some(3), "/plan/parts".to_owned()),
            ("cli:ann@host", None, "/plan/parts /plan/partsman /planning".to_owned()),
        ]
    );
}
