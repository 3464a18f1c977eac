//! What all calls of other services have in common, whoever makes them.

use reqwest::{Client, ClientBuilder, Url, redirect};

/// A client that follows no redirect: it calls whom it was told to call. `url` is where it will call, if that is one place.
pub fn client(url: Option<&Url>) -> ClientBuilder {
    // Fails where the process already has a provider, which is then used.
    _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("dalsegno/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none());
    match url.map(Url::scheme) {
        // Otherwise the client looks for the system's certificates, and fails in an image that has none.
        Some("http") => builder.tls_certs_only([]),
        _ => builder,
    }
}
