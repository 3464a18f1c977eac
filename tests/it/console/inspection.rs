//! The checks of a page in Chromium. One load of it serves each theme and width.

use serde_json::{Value, json};

use super::browser::Browser;
use crate::clients::packages;

/// Each width in each theme, in the order with the fewest changes. A page is loaded as on a phone.
const LOOKS: [(u32, &str); 4] = [(360, "light"), (360, "dark"), (1440, "dark"), (1440, "light")];

/// Lists what is wider than the window, other than what scrolls by itself.
const TOO_WIDE: &str = "if (document.documentElement.scrollWidth <= document.documentElement.clientWidth) return null;
    return [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.wide, pre, .tabs, svg, .sr'))
    .slice(0, 3).map((e) => e.outerHTML.slice(0, 120))";

/// Lists what scrolls sideways on a phone or sticks out of its window.
const SIDEWAYS: &str = "return [...document.querySelectorAll('html, body *')].filter((e) => {
    if (!e.checkVisibility() || e.closest('svg, .sr, .skip, .clip')) return false;
    const style = getComputedStyle(e);
    const scrolls = e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(style.overflowX);
    return scrolls || e.getBoundingClientRect().right > innerWidth + 1;
  }).slice(0, 3).map((e) => e.outerHTML.slice(0, 160))";

/// Counts what a hostile text has made of itself.
const INTRUDERS: &str = "return document.querySelectorAll('body script, body img, body iframe, body [onerror], a[href^=javascript]').length
    + Number(document.title.startsWith('broken'))";

/// A browser that checks pages, with what it has found.
pub struct Inspection {
    browser: Browser,
    /// The script of axe, unless it is not installed.
    axe: Option<String>,
    findings: Vec<String>,
}

impl Inspection {
    /// Starts a browser; `None` if none is installed.
    pub async fn start() -> Option<Self> {
        let browser = Browser::start().await?;
        let axe = packages::axe().map(|path| std::fs::read_to_string(path).unwrap());
        Some(Self { browser, axe, findings: Vec::new() })
    }

    /// Loads a page and checks it in each look.
    pub async fn visit(&mut self, name: &str, url: &str) {
        let (first_width, first_theme) = LOOKS[0];
        self.browser.show_as(first_width, first_theme).await;
        self.browser.open(url).await;
        self.browser.wait_until("document.readyState === 'complete'").await;
        if let Some(axe) = &self.axe {
            self.browser.run(axe).await;
        }
        let mut last_width = 0;
        for (width, theme) in LOOKS {
            self.browser.show_as(width, theme).await;
            let is_first_at_width = width != last_width;
            last_width = width;
            if is_first_at_width {
                self.check_width(name, width).await;
            }
            self.check_with_axe(&format!("{name} {theme} {width}"), is_first_at_width).await;
            self.browser.save_picture(&format!("{name}-{theme}-{width}")).await;
        }
        self.check_content(name).await;
    }

    /// Fails the test if a check has found something.
    pub fn finish(self) {
        assert!(self.findings.is_empty(), "{}", self.findings.join("\n"));
    }

    async fn check_width(&mut self, name: &str, width: u32) {
        let wide = self.browser.run(TOO_WIDE).await;
        if !wide.is_null() {
            self.findings.push(format!("{name} is wider than {width} px: {wide}"));
        }
        if width == LOOKS[0].0 {
            let sideways = self.browser.run(SIDEWAYS).await;
            if sideways != json!([]) {
                self.findings.push(format!("{name} scrolls sideways on a phone: {sideways}"));
            }
        }
    }

    /// Runs axe: all rules once per width, and in the other theme those about colours, the only ones that depend on it.
    async fn check_with_axe(&mut self, look: &str, with_all_rules: bool) {
        if self.axe.is_none() {
            return;
        }
        let rules = match with_all_rules {
            true => json!({ "type": "tag", "values": ["wcag2a", "wcag2aa", "best-practice"] }),
            false => json!({ "type": "rule", "values": ["color-contrast", "link-in-text-block"] }),
        };
        let ask = format!(
            "const done = arguments[arguments.length - 1];
             axe.run(document, {{ runOnly: {rules}, resultTypes: ['violations'] }}).then(({{ violations }}) => done(violations
                 .filter(({{ impact }}) => impact === 'serious' || impact === 'critical')
                 .map(({{ id, nodes }}) => id + ': ' + nodes.slice(0, 3).map(({{ html }}) => html.slice(0, 160)).join(' | '))));"
        );
        let found = self.browser.run_async(&ask).await;
        let found = found.as_array().cloned().unwrap_or_else(|| vec![found]);
        self.findings.extend(found.iter().map(|it: &Value| format!("{look}: {it}")));
    }

    async fn check_content(&mut self, name: &str) {
        if self.browser.run(INTRUDERS).await != 0 {
            self.findings.push(format!("{name} interprets a hostile text"));
        }
        let n_headings = self.browser.run("return document.querySelectorAll('h1').length").await;
        if n_headings != 1 {
            self.findings.push(format!("{name} has {n_headings} headings of the first level"));
        }
        let complaints = self.browser.complaints().await;
        self.findings.extend(complaints.into_iter().map(|it| format!("{name}: {it}")));
    }
}
