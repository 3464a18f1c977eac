//! Addresses of servers in settings.

use reqwest::Url;

use crate::providers::Problem;

/// Reads the setting `base_url`. The URL gets a slash at its end.
pub(in crate::providers) fn parse_base_url(text: &str, example: &str) -> Result<Url, Problem> {
    let wrong =
        |message: &str| Problem::new("base_url", message, format!("an address such as {example}"));
    let mut url = Url::parse(text).map_err(|_| wrong("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("is not an HTTP URL"));
    }
    // They would be visible in every message with the address.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("contains a user name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has a query or a fragment"));
    }
    // Without the slash, joining would replace the last part of a proxy's path.
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}
