//! The part of a session that one call reads.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::domain::{facts::ExtractFacts, messages::PromptPlace, tasks};

/// A stretch of a transcript, with its requests by people.
pub(super) struct TranscriptPart {
    /// The place before the first one.
    pub(super) from_seq: i64,
    pub(super) to_seq: i64,
    pub(super) requests: Vec<Request>,
}

pub(super) struct Request {
    pub(super) seq: i64,
    pub(super) turn: i32,
    pub(super) task_id: Uuid,
    pub(super) text: String,
    pub(super) said_at: DateTime<Utc>,
}

/// Limit of requests per call: more make an answer vague.
const MAX_REQUESTS: usize = 50;

impl TranscriptPart {
    /// Builds a stretch of all requests. Places without a request that may be read are skipped.
    pub(super) fn of(
        from_seq: i64,
        asked: Vec<PromptPlace>,
        requests: Vec<tasks::Request>,
    ) -> Self {
        let to_seq = asked.last().map_or(from_seq, |asked| asked.seq);
        let mut said: HashMap<Uuid, tasks::Request> =
            requests.into_iter().map(|request| (request.task_id, request)).collect();
        let requests = asked.into_iter().filter_map(|PromptPlace { seq, turn, task_id }| {
            let tasks::Request { prompt, said_at, .. } = said.remove(&task_id)?;
            Some(Request { seq, turn, task_id, text: prompt, said_at })
        });
        Self { from_seq, to_seq, requests: requests.collect() }
    }

    /// Returns the first part that fits: one request at least. A single request that is too long is cut.
    pub(super) fn first_part(
        mut self,
        room_tokens: u64,
        tokens_of: impl Fn(&str) -> u64,
    ) -> Option<Self> {
        let mut left = room_tokens;
        let fitting = self.requests.iter().take(MAX_REQUESTS).take_while(|request| {
            let tokens = tokens_of(&request.text);
            let fits = tokens <= left;
            left = left.saturating_sub(tokens);
            fits
        });
        let n_fitting = fitting.count().max(1);
        if n_fitting < self.requests.len() {
            self.requests.truncate(n_fitting);
            self.to_seq = self.requests.last().map_or(self.to_seq, |last| last.seq);
        }
        if let [only] = self.requests.as_mut_slice() {
            let tokens = tokens_of(&only.text);
            if tokens > room_tokens {
                let n_chars = only.text.chars().count() as u64 * room_tokens / tokens.max(1);
                only.text = only.text.chars().take(usize::try_from(n_chars).unwrap_or(0)).collect();
            }
        }
        (self.to_seq > self.from_seq).then_some(self)
    }

    /// Returns the job for the rest, if there is one.
    pub(super) fn remaining_job(&self, job: &ExtractFacts) -> Option<ExtractFacts> {
        let asked: Vec<PromptPlace> =
            job.asked.iter().filter(|asked| asked.seq > self.to_seq).copied().collect();
        (!asked.is_empty()).then(|| ExtractFacts { asked, ..job.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(texts: &[&str]) -> (TranscriptPart, ExtractFacts) {
        let id = |n: i64| Uuid::from_u128(n as u128);
        let asked: Vec<PromptPlace> = (1..=texts.len() as i64)
            .map(|n| PromptPlace { seq: n * 10, turn: n as i32, task_id: id(n) })
            .collect();
        let request = |(n, text): (usize, &&str)| tasks::Request {
            task_id: id(n as i64 + 1),
            prompt: (*text).to_owned(),
            said_at: DateTime::UNIX_EPOCH,
        };
        let requests = texts.iter().enumerate().filter(|(_, text)| !text.is_empty()).map(request);
        let job = ExtractFacts {
            session_id: id(90),
            campaign_id: id(91),
            agent: "writer".to_owned(),
            provider: "sim".to_owned(),
            model: "sim-1".to_owned(),
            credential: None,
            asked: asked.clone(),
        };
        (TranscriptPart::of(5, asked, requests.collect()), job)
    }

    fn chars(text: &str) -> u64 {
        text.chars().count() as u64
    }

    #[test]
    fn requests_beyond_the_window_are_left_to_the_next_job() {
        let (all, job) = stretch(&["aaaa", "bbbb", "cccc"]);
        let first = all.first_part(9, chars).unwrap();
        assert_eq!((first.from_seq, first.to_seq, first.requests.len()), (5, 20, 2));
        let rest = first.remaining_job(&job).unwrap();
        assert_eq!(rest.asked.iter().map(|asked| asked.seq).collect::<Vec<_>>(), [30]);
        let (all, job) = stretch(&["aaaa", "bbbb", "cccc"]);
        let whole = all.first_part(12, chars).unwrap();
        assert_eq!((whole.to_seq, whole.requests.len()), (30, 3));
        assert!(whole.remaining_job(&job).is_none());
    }

    #[test]
    fn a_request_that_is_too_long_is_read_in_part() {
        let (all, _) = stretch(&["aaaaaaaaaaaaaaaa", "b"]);
        let first = all.first_part(4, chars).unwrap();
        assert_eq!((first.to_seq, first.requests[0].text.as_str()), (10, "aaaa"));
    }

    #[test]
    fn unreadable_requests_are_skipped() {
        let (all, job) = stretch(&["", "bbbb", ""]);
        let first = all.first_part(100, chars).unwrap();
        assert_eq!((first.to_seq, first.requests.len(), first.requests[0].turn), (30, 1, 2));
        assert!(first.remaining_job(&job).is_none());
        let (none, _) = stretch(&["", ""]);
        let none = none.first_part(100, chars).unwrap();
        assert_eq!((none.to_seq, none.requests.len()), (20, 0));
    }
}
