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
    for (content, is_used) in [("used", true), ("replaced", false)] {
        let mut new = NewFiles::default();
        new.add("a.txt", content.as_bytes());
        task_files::store_contents(&world.pool, &new, noon()).await.unwrap();
        if is_used {
            task_files::record(&world.pool, (task.id, 1), &new, noon()).await.unwrap();
        }
    }
    cleanups::request(&world.pool).await.unwrap();
    let worker = Worker::start(&world.pool, 0);
    wait_for_runs(&world.pool, 1).await;
    worker.stop().await;
    let left = "select convert_from(content, 'UTF8') from dalsegno.file_contents";
    let left: Vec<String> = sqlx::query_scalar(left).fetch_all(&world.pool).await.unwrap();
    assert_eq!(left, ["used"]);
}
