//! The web console: pages about conversations, rendered on the server.
//!
//! A page is a folder or a file with its route. It reads through operations ([`PageCaller::run`]), and its forms run operations by their id
//! (`actions.rs`), so scopes, reach and audit lines are those of the API. `layout.rs` is the frame of each page, `parts/` has what pages share.
//! Every page can be read without a script.
//!
//! [`PageCaller::run`]: crate::http::pages::PageCaller::run

mod actions;
mod assets;
mod campaign;
mod find;
mod headers;
mod layout;
mod lists;
mod overview;
mod page;
mod parts;
mod problem;
mod range;
mod selection;
mod session;
mod sign_in;
mod sign_ins;
mod task;
mod turn;

use axum::{
    Router, middleware,
    routing::{get, post},
};

use crate::http::{RouterState, pages::Pages};

/// Returns the pages, for the router.
pub fn pages() -> Pages {
    let private = Router::new()
        .route("/", get(overview::show))
        .route("/campaigns", get(lists::campaigns))
        .route("/campaigns/{id}", get(campaign::show))
        .route("/tasks", get(lists::tasks))
        .route("/tasks/selected", get(selection::confirm).post(selection::run))
        .route("/tasks/{id}", get(task::show))
        .route("/tasks/{id}/{text}", get(task::text))
        .route("/sessions", get(lists::sessions))
        .route("/sessions/{id}", get(session::show))
        .route("/sessions/{id}/turns/{number}", get(turn::show))
        .route("/find", get(find::show))
        .route("/sign-ins", get(sign_ins::show))
        .route("/do/{operation}", post(actions::run));
    #[cfg(debug_assertions)]
    let private = private.route("/gallery", get(parts::gallery::show));
    let public: Router<RouterState> = Router::new()
        .route("/assets/{version}/{name}", get(assets::serve))
        .route("/sign-in", get(sign_in::show));
    Pages {
        public: public.layer(middleware::map_response(headers::secure)),
        private: private.layer(middleware::map_response(headers::secure)),
        show_problem: problem::show,
    }
}
