//! The strip of a week on the page of schedules.

use serde_json::json;

use super::{browser::Browser, scenery::Scenery};

impl Scenery {
    /// Adds schedules of several densities. The clock shows Friday 20 November 2026, 12:00 UTC.
    async fn add_schedules(&self) {
        let agent = &self.world.agent().name;
        let task = json!({ "campaign_id": self.world.campaign.id, "agent": agent, "prompt": "Plan the week." });
        for (name, cron, time_zone) in [
            ("weekly", "0 0 9 * * Fri", "UTC"),
            ("quarters", "0 0 */6 * * *", "UTC"),
            ("hourly", "0 0 * * * *", "UTC"),
            ("dense", "0 */10 * * * *", "UTC"),
            ("abroad", "0 30 7 * * Mon", "America/New_York"),
            ("yearly", "0 0 9 1 1 *", "UTC"),
        ] {
            let body =
                json!({ "cron": cron, "time_zone": time_zone, "catch_up_secs": 60, "task": task });
            self.send("PUT", &format!("/v1/schedules/{name}"), &body).await;
        }
    }
}

/// Returns the cells of a schedule's row on the strip.
fn cells<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let strip =
        page.split("class=\"folds week\"").nth(1).unwrap().split("</table>").next().unwrap();
    let row = strip.split("<tr").find(|row| row.contains(&format!("<bdi>{name}</bdi>"))).unwrap();
    row.split("<td").skip(2).collect()
}

#[tokio::test]
async fn the_strip_lists_every_moment_or_their_number() {
    let scenery = Scenery::new().await;
    scenery.add_schedules().await;
    let page = scenery.page("/schedules").await;
    let times = |name: &str| -> Vec<usize> {
        cells(&page, name).iter().map(|cell| cell.matches("<time").count()).collect()
    };
    // It has fired today: its next moment is a week from now.
    assert_eq!(times("weekly"), [0, 0, 0, 0, 0, 0, 0, 1]);
    assert!(cells(&page, "weekly")[7].contains(">09:00<"), "{page}");
    assert_eq!(times("quarters"), [1, 4, 4, 4, 4, 4, 4, 4]);
    let quarters = cells(&page, "quarters")[1];
    assert!(["00:00", "06:00", "12:00", "18:00"].iter().all(|at| quarters.contains(at)));
    let dense = cells(&page, "dense");
    assert!(dense[0].contains("every 10") && dense[0].contains("more than 200 times"), "{dense:?}");
    let hourly = cells(&page, "hourly");
    assert!(hourly[0].contains("11 times") && hourly[1].contains("24 times"), "{hourly:?}");
    assert!(hourly[1].contains("00:00 to 23:00"), "{hourly:?}");
    assert!(cells(&page, "abroad")[3].contains("12:30"), "{page}");
    assert!(page.contains("written in America/New_York"), "{page}");
    assert!(page.contains("Times are those of <b>UTC</b>"), "{page}");
    assert!(cells(&page, "yearly")[0].contains("not within these days"), "{page}");
    assert!(page.contains(">Today, Fri 20<") && page.contains(">Fri 27<"), "{page}");
}

#[tokio::test]
async fn the_schedule_that_runs_next_is_the_first_one_and_names_its_campaign() {
    let scenery = Scenery::new().await;
    scenery.add_schedules().await;
    let of_page = |page: &str| {
        let list = page.rsplit("<tbody>").next().unwrap();
        let name = list.split("<bdi>").nth(1).unwrap().split('<').next().unwrap();
        let next = page.split("Next: <a").nth(1).unwrap().split("<bdi>").nth(1).unwrap();
        (name.to_owned(), next.split('<').next().unwrap().to_owned())
    };
    let page = scenery.page("/schedules").await;
    assert_eq!(of_page(&page), ("dense".to_owned(), "dense".to_owned()), "{page}");
    let campaign = &scenery.world.campaign;
    let link = format!("<a href=\"/campaigns/{}\"><bdi>{}</bdi></a>", campaign.id, campaign.name);
    assert!(page.matches(&link).count() >= 6, "{page}");
    scenery.send("POST", "/v1/schedules/dense/pause", &json!({ "reason": "busy" })).await;
    let page = scenery.page("/schedules").await;
    assert_eq!(of_page(&page), ("hourly".to_owned(), "hourly".to_owned()), "{page}");
}

#[tokio::test]
async fn no_text_of_the_strip_is_above_another_one() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::new().await;
    scenery.add_schedules().await;
    for width in [360, 1440] {
        browser.resize(width, 900).await;
        browser.open(&scenery.url("/schedules")).await;
        browser.save_picture(&format!("schedules-week-{width}")).await;
        let overlaps = "const all = [...document.querySelectorAll('.week :is(th, time, b, .tiny)')].filter((e) => e.checkVisibility() && !e.querySelector('b, time, .tiny'));
            const boxes = all.map((e) => [e.textContent, e.getBoundingClientRect()]);
            const hit = ([, a], [, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
            return boxes.flatMap((a, n) => boxes.slice(n + 1).filter((b) => hit(a, b)).map((b) => a[0] + ' | ' + b[0])).slice(0, 5)";
        assert_eq!(browser.run(overlaps).await, json!([]), "{width}");
        let fits =
            "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
        assert_eq!(browser.run(fits).await, true, "{width}");
    }
    // On a phone each time has its day beside it.
    browser.resize(360, 900).await;
    let label = "return getComputedStyle([...document.querySelectorAll('.week .moment')].at(-1).closest('td'), '::before').content";
    assert_eq!(browser.run(label).await, "\"Fri 27\"");
    // Each day has a line of its own, and the times of all days begin below each other.
    let lines = "return [...document.querySelectorAll('.week tbody tr')].every((row) => {
            const days = [...row.cells].slice(1).filter((cell) => cell.checkVisibility() && !cell.hasAttribute('colspan'));
            const tops = days.map((cell) => Math.round(cell.getBoundingClientRect().top));
            const lefts = days.map((cell) => Math.round(cell.querySelector('time, b').getBoundingClientRect().left));
            return new Set(tops).size === days.length && new Set(lefts).size <= 1;
        })";
    assert_eq!(browser.run(lines).await, true);
}
