//! Each page is reached from the overview, by links and by forms that only read.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    source::{get_routes, route_of},
    upkeep_scenery::UpkeepScenery,
};

/// Routes to which no link of the sceneries' pages leads, with the reason.
const WITHOUT_LINK: &[(&str, &str)] = &[
    ("/attention", "a script reads it for notifications and the icon of the tab"),
    ("/gallery", "parts of pages for developers, in debug builds only"),
    ("/sign-in", "pages lead to it by themselves where a key is required"),
    (
        "/tasks/{id}/files/{name}",
        "no task of the sceneries has a file; tests of its page follow such a link",
    ),
];

/// The targets of a page's links, and of its forms that only read, on this server.
fn links(page: &str) -> Vec<String> {
    let of_links = page.split("href=\"").skip(1);
    let forms = page.split("<form").skip(1).filter_map(|rest| rest.split('>').next());
    let forms = forms.filter(|tag| !tag.contains("method=\"post\""));
    let of_forms = forms.filter_map(|tag| tag.split("action=\"").nth(1));
    let targets = of_links.chain(of_forms).filter_map(|rest| rest.split('"').next());
    let own = targets.filter(|target| target.starts_with('/'));
    own.map(|target| target.replace("&amp;", "&")).collect()
}

#[tokio::test]
async fn every_page_is_reached_from_the_overview_by_links() {
    let furnished = UpkeepScenery::new().await;
    let mut linked: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, path) in furnished.all_pages() {
        let own = route_of(&path).unwrap_or_else(|| panic!("{name}: no route for {path}"));
        let page = furnished.scenery.page(&path).await;
        linked
            .entry(own)
            .or_default()
            .extend(links(&page).iter().filter_map(|link| route_of(link)));
    }
    let mut reached = BTreeSet::from(["/"]);
    let mut next = vec!["/"];
    while let Some(route) = next.pop() {
        let targets = linked.get(route).into_iter().flatten().copied();
        next.extend(targets.filter(|target| reached.insert(*target)).collect::<Vec<_>>());
    }
    let excused: BTreeSet<&str> = WITHOUT_LINK.iter().map(|(route, _)| *route).collect();
    let lost: Vec<_> = get_routes()
        .into_iter()
        .filter(|route| !reached.contains(route) && !excused.contains(route))
        .collect();
    assert!(lost.is_empty(), "no page links {lost:?}: add a link, or a reason");
    let stale: Vec<_> = excused
        .iter()
        .filter(|route| reached.contains(*route) || !get_routes().contains(*route))
        .collect();
    assert!(
        stale.is_empty(),
        "a page links {stale:?}, or there is no such route: remove the reason"
    );
}
