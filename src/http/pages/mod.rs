//! Pages for people beside the API.
//!
//! A console brings the routes and the rendering; this module brings what all pages need: sign-in and sign-out, the cookie, tokens of forms,
//! and the [`PageCaller`], who runs operations with the rights of the request. Errors of any layer are shown as pages to browsers.

mod caller;
mod form;
mod live;
mod short_ids;
mod sign_in;

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, MatchedPath, Request, State},
    http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE},
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};

use self::form::FileFormLimit;
pub use self::{
    caller::PageCaller,
    form::{FormToken, PageForm, TOKEN_FIELD, local_target},
    short_ids::IdAddresses,
    sign_in::see_other,
};
use super::{
    Config, Problem, RouterState,
    auth::{Gate, ShowReload, accepts_html, assign_cookie, gate_pages},
    limits::BodyLimit,
    operations::CallState,
    problem::unknown_route,
    waiters::PageStreams,
};
use crate::domain::feed::Hub;

/// The pages of a console.
pub struct Pages {
    /// Pages that need no sign-in, such as the form for it.
    pub public: Router<RouterState>,
    pub private: Router<RouterState>,
    /// Addresses of private pages that go on with an id: a part of one leads to the whole.
    pub id_addresses: IdAddresses,
    pub show_problem: ShowProblem,
    pub show_reload: ShowReload,
}

/// Renders an error for a browser.
pub type ShowProblem = fn(&FailedRequest, &Problem) -> Response;

/// A request for a page that was refused or has failed.
#[derive(Debug)]
pub struct FailedRequest {
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// True: a script replaces a part of the page with the response.
    pub is_fragment: bool,
    pub headers: HeaderMap,
    /// The token for a form in the response; empty without a cookie.
    pub form_token: String,
}

impl Pages {
    pub(super) fn routes(
        self,
        config: &Config,
        front: RouterState,
        gate: Gate,
        calls: CallState,
    ) -> Router<RouterState> {
        let private = self.private.route("/sign-out", post(sign_in::sign_out));
        let private = private.route("/events", get(live::events));
        let private = private.layer(Extension(FileFormLimit(config.max_bulk_bytes)));
        let ids = (front, self.id_addresses);
        let private = private.layer(middleware::from_fn_with_state(ids, short_ids::complete));
        let private = private.layer(middleware::from_fn_with_state(gate.clone(), gate_pages));
        let public = self.public.route("/sign-in", post(sign_in::sign_in));
        private
            .merge(public)
            .layer(Extension(calls))
            .layer(Extension(Hub::default()))
            .layer(Extension(PageStreams::new(config)))
            .layer(Extension(gate.clone()))
            .layer(DefaultBodyLimit::max(config.max_body_bytes))
            .layer(Extension(BodyLimit(config.max_body_bytes)))
            .layer(middleware::from_fn_with_state(
                config.max_header_bytes,
                super::limits::limit_head_size,
            ))
            .layer(middleware::from_fn_with_state((gate, self.show_reload), assign_cookie))
    }
}

/// Shows the problems of requests for pages in the form that the console gives them.
pub(super) async fn show_problems(
    State(show): State<ShowProblem>,
    request: Request,
    next: Next,
) -> Response {
    let Some(failed) = FailedRequest::of(&request) else { return next.run(request).await };
    let is_unknown = request.extensions().get::<MatchedPath>().is_none();
    let response = next.run(request).await;
    match problem_of(&response) {
        Some(mut problem) => {
            // The check of keys comes before the search for a route, and a browser that is signed in has none.
            if is_unknown && problem.status == StatusCode::UNAUTHORIZED {
                problem = Problem { request_id: problem.request_id, ..unknown_route() };
            }
            let mut shown = show(&failed, &problem);
            for (name, value) in response.headers() {
                let is_own =
                    shown.headers().contains_key(name) || name.as_str() == "www-authenticate";
                if !is_own && !name.as_str().starts_with("content-") {
                    shown.headers_mut().insert(name, value.clone());
                }
            }
            shown
        }
        None => response,
    }
}

/// Returns the problem of a response. Extractors answer with a text, for example to an invalid id in a path.
fn problem_of(response: &Response) -> Option<Problem> {
    let status = response.status();
    let is_text = response.headers().get(CONTENT_TYPE);
    let is_text = is_text.is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    match response.extensions().get::<Problem>() {
        Some(problem) => Some(problem.clone()),
        None if status.is_client_error() && is_text => {
            let detail = "the address of this page has a wrong part: open the page from its list";
            Some(Problem::new(status, "bad_address", detail))
        }
        None => None,
    }
}

impl FailedRequest {
    /// Describes a request of a browser for a page; `None` for requests of programs.
    fn of(request: &Request) -> Option<Self> {
        let is_fragment = request.headers().contains_key("hx-request");
        let is_browser = is_fragment || accepts_html(request.headers());
        let path = request.uri().path();
        let is_api = ["/v1/", "/mcp/"].iter().any(|start| path.starts_with(start))
            || ["/livez", "/readyz", "/metrics"].contains(&path);
        (is_browser && !is_api).then(|| Self {
            method: request.method().clone(),
            target: request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned(),
            is_fragment,
            headers: request.headers().clone(),
            form_token: FormToken::of_headers(request.headers()),
        })
    }
}
