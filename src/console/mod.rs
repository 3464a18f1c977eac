//! The web console: pages about conversations, rendered on the server.
//!
//! A page is a folder or a file with its route. It reads through operations ([`PageCaller::run`]), and its forms run operations by their id
//! (`actions.rs`), so scopes, reach and audit lines are those of the API. `layout.rs` is the frame of each page, `parts/` has what pages share.
//! Every page can be read without a script.
//!
//! [`PageCaller::run`]: crate::http::pages::PageCaller::run

mod actions;
mod assets;
mod audit;
mod campaign;
mod campaign_choice;
mod catalogue;
mod cleanup;
mod cost;
mod doctor;
mod erasures;
mod estimates;
mod find;
mod flow;
mod groups;
mod headers;
mod installation;
mod job_runs;
mod keys;
mod layout;
mod lists;
mod live_jobs;
mod names;
mod navigation;
mod overview;
mod page;
mod parts;
mod pauses;
mod problem;
mod range;
mod redirects;
mod reload;
mod schedules;
mod search;
mod secret;
mod selection;
mod session;
mod sign_in;
mod sign_ins;
mod task;
mod turn;
mod users;
mod webhooks;
mod work;

use axum::{
    Router, middleware,
    routing::{get, post},
};

pub use self::redirects::REDIRECTS;
use crate::{
    http::{
        RouterState,
        pages::{IdAddresses, Pages},
    },
    operations::Noun,
};

/// Pages of a thing with an id, and of what belongs to it.
const ID_ADDRESSES: IdAddresses = &[
    ("/campaigns", Noun::Campaign),
    ("/cost/evals", Noun::Campaign),
    ("/flows", Noun::Flow),
    ("/sessions", Noun::Session),
    ("/tasks", Noun::Task),
    ("/webhooks", Noun::Webhook),
];

/// Returns the pages, for the router.
pub fn pages() -> Pages {
    let private = Router::new()
        .route("/", get(overview::show))
        .route("/attention", get(overview::notices))
        .route("/campaigns", get(lists::campaigns))
        .route("/campaigns/{id}", get(campaign::show))
        .route("/campaigns/{id}/memory.json", get(campaign::memory_export::file))
        .route(
            "/campaigns/{id}/tasks/new",
            get(campaign::new_task::show).post(campaign::new_task::estimate),
        )
        .route("/tasks", get(lists::tasks))
        .route("/tasks/new", get(lists::new_task))
        .route("/tasks/selected", get(selection::confirm).post(selection::run))
        .route("/tasks/{id}", get(task::show))
        .route("/tasks/{id}/children", post(task::children::add))
        .route("/tasks/{id}/files/{name}", get(task::files::download))
        .route("/tasks/{id}/{text}", get(task::text))
        .route("/sessions", get(lists::sessions))
        .route("/sessions/{id}", get(session::show))
        .route("/sessions/{id}/turns", get(session::turns::show))
        .route("/sessions/{id}/compactions/{number}", get(session::compaction::show))
        .route("/sessions/{id}/turns/{number}", get(turn::show))
        .route("/flows", get(flow::list))
        .route("/flows/start", get(flow::start).post(flow::estimate))
        .route("/flows/{id}", get(flow::show))
        .route("/cost", get(cost::show))
        .route("/cost/report.csv", get(cost::csv))
        .route("/cost/calls", get(cost::calls))
        .route("/cost/budgets", get(cost::budgets))
        .route("/cost/evals", get(cost::evals::show))
        .route("/cost/evals/{campaign}/{run}", get(cost::evals::one))
        .route("/catalogue", get(catalogue::list))
        .route("/catalogue/{kind}/{name}", get(catalogue::show))
        .route("/work", get(work::show))
        .route("/work/jobs", get(work::jobs::show))
        .route("/work/jobs/{id}", get(work::job::show))
        .route("/work/lanes", get(work::lanes::show))
        .route("/work/bulk", get(work::bulk::show).post(work::bulk::run))
        .route("/schedules", get(schedules::show))
        .route("/schedules/{name}", get(schedules::one::show))
        .route("/users", get(users::show))
        .route("/cleanup", get(cleanup::show))
        .route("/erasures", get(erasures::list))
        .route("/erasures/{id}", get(erasures::show))
        .route("/erasures/{id}/receipt.json", get(erasures::receipt))
        .route("/doctor", get(doctor::show))
        .route("/installation", get(installation::show))
        .route("/webhooks", get(webhooks::show).post(webhooks::add))
        .route("/webhooks/{id}", get(webhooks::receiver::show))
        .route("/webhooks/{id}/rotate", post(webhooks::receiver::rotate))
        .route("/webhooks/{id}/replay", post(webhooks::receiver::replay_since))
        .route("/keys", get(keys::show).post(keys::create))
        .route("/keys/{id}/rotate", post(keys::rotate))
        .route("/audit", get(audit::show))
        .route("/find", get(find::show))
        .route("/search", get(search::show))
        .route("/sign-ins", get(sign_ins::show))
        .route("/do/{operation}", post(actions::run));
    let private = redirects::add(private);
    #[cfg(debug_assertions)]
    let private = private.route("/gallery", get(parts::gallery::show));
    let public: Router<RouterState> = Router::new()
        .route("/assets/{version}/{name}", get(assets::serve))
        .route("/sign-in", get(sign_in::show));
    Pages {
        public: public.layer(middleware::map_response(headers::secure)),
        private: private.layer(middleware::map_response(headers::secure)),
        id_addresses: ID_ADDRESSES,
        show_problem: problem::show,
        show_reload: reload::show,
    }
}
