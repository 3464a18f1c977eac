//! The rail: its entries, and that they have the words of their pages and of the documents.

use super::{browser::Browser, scenery::Scenery};

/// Address and words of each entry, without the campaigns.
const ENTRIES: [(&str, &str); 20] = [
    ("/", "Overview"),
    ("/search", "Search"),
    ("/work", "Work"),
    ("/work/jobs", "Jobs"),
    ("/work/lanes", "Lanes"),
    ("/work/bulk", "Bulk actions"),
    ("/tasks", "Tasks"),
    ("/sessions", "Sessions"),
    ("/flows", "Flows"),
    ("/cost", "Cost"),
    ("/cost/budgets", "Budgets"),
    ("/cost/evals", "Evals"),
    ("/catalogue", "Agents"),
    ("/schedules", "Schedules"),
    ("/users", "Users"),
    ("/webhooks", "Webhooks"),
    ("/cleanup", "Cleanup"),
    ("/erasures", "Erasures"),
    ("/keys", "API keys"),
    ("/doctor", "Doctor"),
];

#[tokio::test]
async fn entries_have_the_words_of_their_pages_and_of_the_document() {
    let scenery = Scenery::new().await;
    let page = scenery.page("/").await;
    let rail = page.split("id=\"rail\"").nth(1).unwrap().split("</nav>").next().unwrap();
    let document = include_str!("../../../docs/how-to/console.md");
    let more = [("/audit", "Audit log"), ("/installation", "Installation")];
    for (target, words) in ENTRIES.into_iter().chain(more) {
        let href = format!("href=\"{target}\"");
        let mut links = rail.split(&href).skip(1).map(|rest| rest.split("</a>").next().unwrap());
        assert!(links.any(|link| link.contains(&format!(">{words}"))), "{words} in {rail}");
        let own = scenery.page(target).await;
        let title = own.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
        assert_eq!(title, format!("{words} · Dalsegno"), "{target}");
        let listed = document.lines().filter(|line| line.starts_with("| "));
        let mut names = listed.filter_map(|line| line.split('|').nth(1));
        assert!(
            names.any(|names| names.to_lowercase().contains(&words.to_lowercase())),
            "{words} has no row in docs/how-to/console.md"
        );
    }
    for word in [">Data<", ">Access<", ">Health<"] {
        assert!(!rail.contains(word), "{word} in {rail}");
    }
}

#[tokio::test]
async fn the_rail_leads_to_pages_below_an_entry_and_marks_where_one_is() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/")).await;
    browser.click("#rail a[href='/cost/budgets']").await;
    browser.wait_until("location.pathname === '/cost/budgets'").await;
    let marked = "return [...document.querySelectorAll('#rail [aria-current]')].map((a) => a.getAttribute('href') + ' ' + a.getAttribute('aria-current'))";
    assert_eq!(browser.run(marked).await, serde_json::json!(["/cost true", "/cost/budgets page"]));
    browser.resize(360, 740).await;
    browser.wait_until("document.documentElement.dataset.ready !== undefined").await;
    browser.click(".bar [popovertarget=rail]").await;
    browser.wait_until("document.querySelector('#rail:popover-open')").await;
    let small = "return [...document.querySelectorAll('#rail li a')].filter((a) => a.getBoundingClientRect().height < 24).map((a) => a.textContent)";
    assert_eq!(browser.run(small).await, serde_json::json!([]));
    let wide =
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    assert_eq!(browser.run(wide).await, true);
    browser.click("#rail a[href='/work/lanes']").await;
    browser.wait_until("location.pathname === '/work/lanes'").await;
}
