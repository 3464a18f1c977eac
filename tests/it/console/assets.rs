//! The files of the console, and the headers of its pages.

use sha2::{Digest as _, Sha256};

use super::{
    scenery::Scenery,
    source::{get_routes, route_of},
    upkeep_scenery::UpkeepScenery,
};
use crate::{app::TestApp, http::client::send};

const POLICY: &str = "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Returns the names of all files that pages load.
pub fn files() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/console/assets");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let is_loaded = |name: &String| [".js", ".css", ".svg"].iter().any(|end| name.ends_with(end));
    names.filter_map(|name| name.into_string().ok()).filter(is_loaded).collect()
}

#[tokio::test]
async fn every_route_of_the_console_is_among_the_tested_pages() {
    let pages = UpkeepScenery::new().await.all_pages();
    // These are texts, files and a list for a script.
    let others = [
        "/tasks/{id}/{text}",
        "/tasks/{id}/files/{name}",
        "/assets/{version}/{name}",
        "/attention",
        "/cost/report.csv",
        "/erasures/{id}/receipt.json",
        "/campaigns/{id}/memory.json",
    ];
    let tested: Vec<_> = pages.iter().filter_map(|(_, path)| route_of(path)).collect();
    let routes: Vec<_> = get_routes().into_iter().filter(|route| !others.contains(route)).collect();
    assert!(routes.len() > 40, "{routes:?}");
    for route in routes {
        assert!(
            tested.contains(&route),
            "{route} is missing in Scenery::pages and UpkeepScenery::pages"
        );
    }
}

#[tokio::test]
async fn files_have_the_hash_of_their_version_and_are_kept() {
    let app = TestApp::start().await;
    let page = app.get("/").await;
    let path = page.body.split('"').find(|part| part.ends_with("/style.css")).unwrap().to_owned();
    let file = app.get(&path).await;
    assert_eq!(file.status, 200, "{}", file.head);
    assert!(
        file.head.contains("cache-control: public, max-age=31536000, immutable"),
        "{}",
        file.head
    );
    let tag = file.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let again = send(app.address, "GET", &path, &[("If-None-Match", tag)], "").await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    // A page of an older version gets the file, and asks again next time.
    let older = app.get("/assets/0000000000000000/style.css").await;
    assert!(
        older.status == 200 && older.head.contains("cache-control: no-cache"),
        "{}",
        older.head
    );
    assert_eq!(app.get("/assets/0000000000000000/secret.txt").await.status, 404);
}

#[tokio::test]
async fn every_page_has_the_strict_policy_and_is_not_stored() {
    let scenery = Scenery::new().await;
    for (name, path) in scenery.pages() {
        let page = scenery.app.get(&path).await;
        assert_eq!(page.status, 200, "{name}: {}\n{}", page.head, page.body);
        for header in [
            POLICY,
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "referrer-policy: same-origin",
        ] {
            assert!(page.head.contains(header), "{name}: {header}\n{}", page.head);
        }
        for forbidden in
            ["<style", " style=", "onclick=", "href=\"javascript:", "<script>", "http-equiv"]
        {
            assert!(!page.body.contains(forbidden), "{name} has {forbidden}");
        }
    }
}

#[test]
fn htmx_is_the_published_file() {
    let file = include_bytes!("../../../src/console/assets/htmx.min.js");
    let hash = Sha256::digest(file).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hash, "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717");
    let readme = include_str!("../../../src/console/assets/README.md");
    assert!(readme.contains(&hash) && readme.contains("2.0.11"));
    assert!(String::from_utf8_lossy(file).contains("2.0.11"));
}

#[tokio::test]
async fn an_unknown_page_is_a_page_for_browsers_and_a_problem_for_programs() {
    let app = TestApp::start().await;
    let html = [("Accept", "text/html")];
    let page = send(app.address, "GET", "/nothing", &html, "").await;
    assert_eq!(page.status, 404);
    assert!(page.head.contains(POLICY) && page.body.contains("<h2>Not Found"), "{page:?}");
    let program = send(app.address, "GET", "/nothing", &[], "").await;
    program.problem(404, "not_found");
    // Those of the API stay problems, also in a browser.
    send(app.address, "GET", "/v1/nothing", &html, "").await.problem(404, "not_found");
    let unknown = format!("/tasks/{}", uuid::Uuid::nil());
    let page = send(app.address, "GET", &unknown, &html, "").await;
    assert!(page.status == 404 && page.body.contains("dalsegno task ls"), "{page:?}");
}
