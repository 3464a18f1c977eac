//! The files of the console, and the headers of its pages.

use sha2::{Digest as _, Sha256};

use super::scenery::Scenery;
use crate::{app::TestApp, http::client::send};

const POLICY: &str = "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

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

#[tokio::test]
async fn the_first_load_is_small() {
    let scenery = Scenery::new().await;
    let mut n_bytes = 0;
    let page = scenery.app.get(&format!("/tasks/{}", scenery.done)).await;
    for path in page.body.split('"').filter(|part| part.starts_with("/assets/")) {
        n_bytes += scenery.app.get(path.split('#').next().unwrap()).await.body.len()
            * usize::from(!path.contains('#'));
    }
    let names = ["keys.js", "times.js", "icons.svg"];
    for name in names {
        n_bytes += scenery.app.get(&format!("/assets/0/{name}")).await.body.len();
    }
    let n_bytes = n_bytes + page.body.len();
    assert!(n_bytes <= 150_000, "{n_bytes} bytes");
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
