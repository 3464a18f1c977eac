//! Sign-in and sign-out: a key for a cookie, and the end of the cookie.

use axum::{
    Extension,
    extract::Request,
    http::{HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse as _, Response},
};

use super::{PageForm, local_target};
use crate::http::{
    Problem, RouterState,
    auth::{Gate, PageAccess, set_sign_in_cookie},
};

/// Exchanges the key of the form for a cookie, and goes on to the page that was asked for.
pub(super) async fn sign_in(
    Extension(gate): Extension<Gate>,
    axum::extract::State(front): axum::extract::State<RouterState>,
    request: Request,
) -> Result<Response, Problem> {
    let (peer, is_secure) = (gate.peer(&request)?, gate.is_secure(&request));
    let headers = request.headers().clone();
    let form = PageForm::read_sign_in(request, &front).await?;
    let key = form.field("key").unwrap_or_default().trim();
    let (cookie, lifetime_secs) = gate.sign_in(peer, &headers, key).await?;
    let mut response = see_other(local_target(form.field("next")));
    set_sign_in_cookie(response.headers_mut(), &cookie, lifetime_secs, is_secure);
    Ok(response)
}

/// Ends the sign-in of this browser.
pub(super) async fn sign_out(
    Extension(gate): Extension<Gate>,
    Extension(access): Extension<PageAccess>,
    _: PageForm,
) -> Result<Response, Problem> {
    gate.sign_out(&access).await?;
    Ok(see_other("/sign-in"))
}

/// Goes on to another page.
pub fn see_other(target: &str) -> Response {
    let target = HeaderValue::try_from(target).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response()
}
