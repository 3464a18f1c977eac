//! A page in each theme and width.

use super::browser::{Browser, are_pictures_asked_for};

impl Browser {
    /// Checks that the page is no wider than its window, and saves a picture per theme and width if pictures are asked for.
    pub async fn save_in_all_looks(&self, name: &str) {
        self.wait_until("document.readyState === 'complete'").await;
        for width in [360, 1440] {
            self.resize(width, 900).await;
            self.wait_until(&format!("innerWidth === {width}")).await;
            let wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
            assert_eq!(self.run(wide).await, false, "{name} is wider than {width} px");
            if !are_pictures_asked_for() {
                continue;
            }
            let height = self.run("return document.documentElement.scrollHeight").await;
            let height =
                height.as_u64().and_then(|height| u32::try_from(height).ok()).unwrap_or(900);
            self.resize(width, height.clamp(900, 6_000)).await;
            for theme in ["light", "dark"] {
                self.prefer(theme).await;
                self.save_picture(&format!("{name}-{theme}-{width}")).await;
            }
        }
    }
}
