//! Contents of files that no task has.

use dalsegno::domain::{
    cleanups,
    task_files::{self, NewFiles},
};

use super::job::{Worker, wait_for_runs};
use crate::{app::noon, conversations::world::World};

#[tokio::test]
async fn contents_without_a_file_are_removed() {
    let world = World::new().await;
    let task = world.add("Part one.").await;
    let attached =
        "insert into dalsegno.task_attachments (attached_at, position, task_id, sha256, name)
                    select now(), 1, $1, sha256('attached'), 'a.txt'";
    for (content, is_used) in [("attached", false), ("used", true), ("replaced", false)] {
        let mut new = NewFiles::default();
        new.add("a.txt", content.as_bytes());
        task_files::store_contents(&world.pool, &new, noon()).await.unwrap();
        if is_used {
            task_files::record(&world.pool, (task.id, 1), &new, noon()).await.unwrap();
        }
    }
    sqlx::query(attached).bind(task.id).execute(&world.pool).await.unwrap();
    cleanups::request(&world.pool, "cli:ann@vm").await.unwrap();
    let worker = Worker::start(&world.pool, 0);
    wait_for_runs(&world.pool, 1).await;
    worker.stop().await;
    let left_contents =
        "select convert_from(content, 'UTF8') from dalsegno.file_contents order by 1";
    let left: Vec<String> = sqlx::query_scalar(left_contents).fetch_all(&world.pool).await.unwrap();
    assert_eq!(left, ["attached", "used"]);
    // The last use takes the content with it.
    sqlx::query("delete from dalsegno.task_attachments").execute(&world.pool).await.unwrap();
    let left: Vec<String> = sqlx::query_scalar(left_contents).fetch_all(&world.pool).await.unwrap();
    assert_eq!(left, ["used"]);
}
