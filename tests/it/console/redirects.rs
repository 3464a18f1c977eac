//! Guessed addresses: each leads to a page, and the page for an unknown one to the search.

use dalsegno::console::REDIRECTS;

use super::{
    scenery::Scenery,
    sign_in::{HTML, KEYS, open, sign_in},
};
use crate::http::{client, key_setup::ADMIN_KEY};

/// Returns true if a path is one of a route or a page, of which some parts are names.
fn fits(route: &str, path: &str) -> bool {
    let (route, path): (Vec<_>, Vec<_>) = (route.split('/').collect(), path.split('/').collect());
    let equal = |(part, given): (&&str, &&str)| part.starts_with('{') || part == given;
    route.len() == path.len() && route.iter().zip(&path).all(equal)
}

#[tokio::test]
async fn each_guessed_address_leads_to_a_page() {
    let scenery = Scenery::new().await;
    let pages = scenery.pages();
    let source = include_str!("../../../src/console/mod.rs");
    let routes: Vec<&str> =
        source.split(".route(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let path_of = |target: &str| target.split(['?', '#']).next().unwrap().to_owned();
    for (guess, target) in REDIRECTS {
        let known = pages.iter().map(|(_, path)| path_of(path));
        let pattern = target.replace("{}", "{name}");
        let mut known = known.filter(|path| {
            let is_action = ["new", "start", "selected"].iter().any(|end| path.ends_with(end));
            target.contains("/{}") && fits(&pattern, path) && !is_action
        });
        let name = known.next_back().map(|path| path.rsplit('/').next().unwrap().to_owned());
        let (asked, name) = match (guess.split_once('{'), &name) {
            (Some((start, _)), Some(name)) => (format!("{start}{name}"), name.as_str()),
            (Some((start, _)), None) => (format!("{start}sample"), "sample"),
            (None, _) => ((*guess).to_owned(), ""),
        };
        let reply = client::send(scenery.app.address, "GET", &asked, &[HTML], "").await;
        let location = reply.head.lines().find_map(|line| line.strip_prefix("location: "));
        let location = location.unwrap_or_else(|| panic!("{asked}: {reply:?}")).to_owned();
        assert_eq!((reply.status, &location), (303, &target.replace("{}", name)), "{asked}");
        let path = path_of(&location);
        assert!(routes.iter().any(|route| fits(route, &path)), "{guess}: no page at {path}");
        // Of a thing that the scenery does not have, its page says so.
        if name != "sample" || !target.contains("/{}") {
            scenery.page(&path).await;
        }
    }
}

#[tokio::test]
async fn the_page_for_an_unknown_address_leads_to_the_search_with_its_words() {
    let scenery = Scenery::new().await;
    let unknown = async |path: &str| {
        let reply = client::send(scenery.app.address, "GET", path, &[HTML], "").await;
        assert_eq!(reply.status, 404, "{path}: {reply:?}");
        reply.body
    };
    let page = unknown("/provider-limits/caf%C3%A9?x=1").await;
    let search = "href=\"/find?q=provider%20limits%20caf%C3%A9\"";
    assert!(page.contains(search) && page.contains("<bdi>provider limits café</bdi>"), "{page}");
    scenery.page("/find?q=provider%20limits%20caf%C3%A9").await;
    // An unknown task has a problem of its own, and its id is no word.
    let page = unknown(&format!("/tasks/{}", uuid::Uuid::nil())).await;
    assert!(!page.contains("/find?q="), "{page}");
}

#[tokio::test]
async fn a_browser_gets_a_page_for_every_unknown_address_and_none_that_never_ends() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let admin = sign_in(app, ADMIN_KEY).await;
    for path in ["/nothing", "/x/y/z", "/metrics2", "/livez/x"] {
        for cookie in ["", admin.as_str()] {
            let page = open(app, path, cookie).await;
            assert_eq!(page.status, 404, "{path} {cookie}: {page:?}");
            let is_page = page.body.contains("There is no page at this path");
            assert!(is_page && page.body.contains("href=\"/find?q="), "{path}: {page:?}");
        }
        let program = client::send(app.address, "GET", path, &[], "").await;
        program.problem(401, "unauthenticated");
    }
    // A page still needs a sign-in.
    let refused = open(app, "/tasks", "").await;
    assert!(refused.head.contains("location: /sign-in?next=%2Ftasks"), "{refused:?}");
    let events = open(app, "/events", &admin).await;
    let is_led = events.head.lines().any(|line| line == "location: /");
    assert!(events.status == 303 && is_led, "{events:?}");
}

#[tokio::test]
async fn a_part_of_an_id_leads_to_the_page_with_the_whole_id() {
    let scenery = Scenery::new().await;
    let get = async |path: &str| client::send(scenery.app.address, "GET", path, &[HTML], "").await;
    let end = |id: uuid::Uuid| id.simple().to_string()[20..].to_owned();
    let campaign = scenery.world.campaign.id;
    for (begin, id, rest) in [
        ("/tasks", scenery.done, ""),
        ("/sessions", scenery.session_id, "/turns/1?call=1"),
        ("/campaigns", campaign, "?part=memory"),
        ("/flows", scenery.flow, ""),
    ] {
        let reply = get(&format!("{begin}/{}{rest}", end(id))).await;
        let location = reply.head.lines().find_map(|line| line.strip_prefix("location: "));
        let whole = format!("{begin}/{id}{rest}");
        assert_eq!((reply.status, location), (303, Some(whole.as_str())), "{reply:?}");
    }
    let unknown = get("/tasks/00000000dead").await;
    assert_eq!(unknown.status, 404, "{unknown:?}");
    assert!(unknown.body.contains("href=\"/find?q=00000000dead\""), "{unknown:?}");
    // The name of a page is no id.
    assert_eq!(get("/tasks/new").await.status, 200);
    let wrong = get("/tasks/harbour").await;
    assert!(wrong.status == 400 && wrong.body.contains("/find?q=tasks%20harbour"), "{wrong:?}");
}
