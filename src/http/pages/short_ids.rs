//! Addresses with a part of an id, as lists print it: each redirects to the page with the whole id.

use axum::{
    extract::{FromRequestParts as _, Request, State},
    http::{Method, Uri},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use uuid::Uuid;

use super::{PageCaller, see_other};
use crate::{
    domain::ids::PartialId,
    http::{Problem, RouterState},
    operations::{FindId, Noun},
};

/// The beginnings of the addresses that go on with an id, each with the noun that has it.
pub type IdAddresses = &'static [(&'static str, Noun)];

/// An address with a part of an id.
#[derive(Debug, PartialEq, Eq)]
struct ShortAddress<'a> {
    begin: &'static str,
    noun: Noun,
    given: &'a str,
    /// The path after the id.
    end: &'a str,
}

/// Finds the whole id of a request for a page, and goes on to its address.
pub(super) async fn complete(
    State((front, addresses)): State<(RouterState, IdAddresses)>,
    request: Request,
    next: Next,
) -> Response {
    let uri = request.uri().clone();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let address = ShortAddress::of(addresses, uri.path()).filter(|_| is_read);
    let Some(address) = address else { return next.run(request).await };
    let (mut parts, _) = request.into_parts();
    let caller = match PageCaller::from_request_parts(&mut parts, &front).await {
        Ok(caller) => caller,
        Err(problem) => return problem.into_response(),
    };
    let find = FindId { noun: address.noun, text: address.given.to_owned(), newest: None };
    match caller.run(find).await {
        Ok(found) => see_other(&address.completed(found.id, &uri)),
        Err(refusal) => Problem::from(refusal).into_response(),
    }
}

impl<'a> ShortAddress<'a> {
    /// Reads a path. `None`: it has no id, or a whole one.
    fn of(addresses: IdAddresses, path: &'a str) -> Option<Self> {
        addresses.iter().find_map(|&(begin, noun)| {
            let rest = path.strip_prefix(begin)?.strip_prefix('/')?;
            let (given, end) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let partial: PartialId = given.parse().ok()?;
            partial.whole().is_none().then_some(Self { begin, noun, given, end })
        })
    }

    /// Returns the address with the whole id, and with the query of the request.
    fn completed(&self, id: Uuid, uri: &Uri) -> String {
        let Self { begin, end, .. } = self;
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{begin}/{id}{end}{query}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: IdAddresses = &[("/tasks", Noun::Task), ("/cost/evals", Noun::Campaign)];

    #[test]
    fn parts_of_ids_are_told_from_whole_ones_and_from_names() {
        let given = |path| ShortAddress::of(ADDRESSES, path).map(|it| (it.noun, it.given));
        assert_eq!(given("/tasks/f143d398024f"), Some((Noun::Task, "f143d398024f")));
        assert_eq!(given("/tasks/019aa2f1-7c/files/a"), Some((Noun::Task, "019aa2f1-7c")));
        assert_eq!(given("/cost/evals/f143d398024f/3"), Some((Noun::Campaign, "f143d398024f")));
        for path in ["/tasks", "/tasks/", "/tasks/new", "/tasks/selected", "/work/jobs/12", "/"] {
            assert_eq!(given(path), None, "{path}");
        }
        assert_eq!(given("/tasks/019aa2f4-0000-7000-8000-00000000dead"), None);
    }

    #[test]
    fn the_rest_of_the_address_is_kept() {
        let uri: Uri = "/tasks/f143d398024f/files/a%20b.csv?x=1".parse().unwrap();
        let address = ShortAddress::of(ADDRESSES, uri.path()).unwrap();
        let whole = format!("/tasks/{}/files/a%20b.csv?x=1", Uuid::nil());
        assert_eq!(address.completed(Uuid::nil(), &uri), whole);
    }
}
