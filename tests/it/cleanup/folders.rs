//! Local files of removed sessions.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::{
    clock::ManualClock,
    config::Config,
    domain::cleanups,
    jobs::{Services, SweepCount, sweep_folders},
    settings::{Environment, Flags},
    traces::Traces,
};
use sqlx::PgPool;
use uuid::Uuid;

use crate::conversations::world::{TurnSettings, World};

/// Creates a folder like that of a session, with 1,000 bytes.
fn create_session_folder(root: &Path, name: &str) -> PathBuf {
    let folder = root.join("claude").join(name);
    fs::create_dir_all(folder.join("config/projects")).unwrap();
    fs::write(folder.join("config/projects/a.jsonl"), [b'x'; 1000]).unwrap();
    folder
}

/// Builds the services of a worker with this data folder, whose clock stands at `now`.
pub fn build_services(root: &Path, now: DateTime<Utc>) -> Arc<Services> {
    let set = vec![("service.data_dir".to_owned(), root.display().to_string())];
    let config = Config::load(&Environment::default(), &Flags { file: None, set }).unwrap();
    let program = env!("CARGO_BIN_EXE_dalsegno").into();
    Services::build(&config, Arc::new(ManualClock::at(now)), program, Traces::default()).unwrap()
}

async fn session(pool: &PgPool, external_id: Uuid, closed_at: Option<DateTime<Utc>>) {
    let sql = "insert into dalsegno.sessions (id, campaign_id, agent_type, instance, provider, model, prompt_hash, fence_seed,
                      expires_at, external_session_id, closed_at, closed_because, state)
               select gen_random_uuid(), id, 'a', 'i' || $3, 'claude', 'm', repeat('a', 64), decode(repeat('00', 32), 'hex'), now(),
                      $1, $2, case when $2::timestamptz is null then null else 'reset' end,
                      case when $2::timestamptz is null then 'idle' else 'closed' end
                 from dalsegno.campaigns";
    let (external_id, instance) = (external_id.to_string(), external_id.simple().to_string());
    sqlx::query(sql).bind(external_id).bind(closed_at).bind(instance).execute(pool).await.unwrap();
}

#[tokio::test]
async fn only_folders_of_removed_sessions_are_removed() {
    let world = World::new().await;
    world.turn("Part one.", TurnSettings::default()).await;
    let root = tempfile::tempdir().unwrap();
    // Files have the time of the machine.
    let now = Utc::now() + TimeDelta::days(10);
    let services = build_services(root.path(), now);
    assert_eq!(sweep_folders(&services, &world.pool, "here").await.unwrap(), SweepCount::default());

    let ids: Vec<Uuid> = (0..6).map(|_| Uuid::new_v4()).collect();
    let [open, just_closed, long_closed, gone, young, inside] = &ids[..] else { unreachable!() };
    session(&world.pool, *open, None).await;
    session(&world.pool, *just_closed, Some(now - TimeDelta::hours(2))).await;
    session(&world.pool, *long_closed, Some(now - TimeDelta::days(2))).await;
    let folders: Vec<_> =
        ids.iter().map(|id| create_session_folder(root.path(), &id.to_string())).collect();
    let strange = create_session_folder(root.path(), "not-a-session");
    let recently: SystemTime = (now - TimeDelta::hours(3)).into();
    File::open(&folders[4]).unwrap().set_modified(recently).unwrap();
    // A call without a session: only a file deep inside has changed.
    let deep = File::options().write(true).open(folders[5].join("config/projects/a.jsonl"));
    deep.unwrap().set_modified(recently).unwrap();

    let swept = sweep_folders(&services, &world.pool, "here").await.unwrap();
    assert_eq!(swept, SweepCount { folders: 2, bytes: 2000 });
    let left = |id: &Uuid| root.path().join("claude").join(id.to_string()).exists();
    assert_eq!([gone, long_closed].map(left), [false; 2]);
    assert_eq!([open, just_closed, young, inside].map(left), [true; 4]);
    assert!(strange.exists());
    let runs = cleanups::list(&world.pool, None, 10).await.unwrap();
    assert_eq!((runs.len(), runs[0].folders, runs[0].bytes), (1, 2, 2000));
    assert_eq!((runs[0].host.as_str(), runs[0].kind.as_str()), ("here", "folders"));
    assert_eq!(sweep_folders(&services, &world.pool, "here").await.unwrap(), SweepCount::default());
}

#[tokio::test]
async fn workspaces_are_removed_with_the_last_session_of_a_closed_campaign() {
    let world = World::new().await;
    let root = tempfile::tempdir().unwrap();
    let now = Utc::now() + TimeDelta::days(10);
    let services = build_services(root.path(), now);
    let workspace = root.path().join("workspaces").join(world.campaign.id.to_string());
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join("notes.txt"), "Ahoy.").unwrap();
    session(&world.pool, Uuid::new_v4(), Some(now - TimeDelta::days(2))).await;
    let sweep = async || sweep_folders(&services, &world.pool, "here").await.unwrap();
    assert_eq!(sweep().await, SweepCount::default(), "the campaign is still open");
    let close = "update dalsegno.campaigns set status = 'closed', closed_at = $1";
    let closed_at = now - TimeDelta::days(2);
    sqlx::query(close).bind(closed_at).execute(&world.pool).await.unwrap();
    assert_eq!(sweep().await, SweepCount::default(), "a session of the campaign is left");
    sqlx::query("delete from dalsegno.sessions").execute(&world.pool).await.unwrap();
    assert_eq!(sweep().await, SweepCount { folders: 1, bytes: 5 });
    assert!(!workspace.exists());
}

#[tokio::test]
async fn workspaces_are_removed_where_the_folders_of_sessions_cannot_be_listed() {
    let world = World::new().await;
    let root = tempfile::tempdir().unwrap();
    let now = Utc::now() + TimeDelta::days(10);
    let services = build_services(root.path(), now);
    // As on a broken volume.
    fs::write(root.path().join("claude"), "").unwrap();
    let workspace = root.path().join("workspaces").join(world.campaign.id.to_string());
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join("notes.txt"), "Ahoy.").unwrap();
    let close = "update dalsegno.campaigns set status = 'closed', closed_at = $1";
    let closed_at = now - TimeDelta::days(2);
    sqlx::query(close).bind(closed_at).execute(&world.pool).await.unwrap();
    let error = sweep_folders(&services, &world.pool, "here").await.unwrap_err();
    assert!(error.to_string().starts_with("cannot list folders in "), "{error}");
    assert!(!workspace.exists());
    let runs = cleanups::list(&world.pool, None, 10).await.unwrap();
    assert_eq!((runs.len(), runs[0].folders, runs[0].bytes), (1, 1, 5));
}
