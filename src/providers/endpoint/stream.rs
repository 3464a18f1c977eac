//! Reads the answer of a call as a stream of server-sent events. What an event means is up to the API: see [`StreamedReply`].
//!
//! A server may also answer with one JSON object instead of a stream: with an error, or because it does not stream.

use std::time::Duration;

use reqwest::Response;
use tokio::time::Instant;

use super::{Counts, Endpoint, Error, Plan};
use crate::providers::{
    EventSink, Status, ToldLimits, Usage,
    deadline::CallDeadline,
    http::{Activity, Step, event_data},
    limits,
    line_splitter::Lines,
};

/// A reply that is assembled from events, without any IO.
pub(in crate::providers) trait StreamedReply: Default {
    /// Adds the data of an event, or a whole answer that was not streamed.
    fn accept(&mut self, data: &[u8], plan: &Plan<'_>) -> Result<Delta, Error>;

    /// Adds text that was held because the next event might have changed its meaning.
    fn release(&mut self) -> Delta;

    /// Returns true if nothing can follow.
    fn is_done(&self) -> bool;

    /// Returns true if the answer is whole. Token counts may follow.
    fn is_whole(&self) -> bool;

    /// Returns the length of the text so far.
    fn n_chars(&self) -> usize;

    /// Returns the token counts so far.
    fn counts(&self) -> Counts;
}

/// Addition of one event, for people who watch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::providers) struct Delta {
    pub(in crate::providers) text: String,
    pub(in crate::providers) began_thinking: bool,
    pub(in crate::providers) began_answering: bool,
}

/// A reply and the lines that are no events.
#[derive(Debug, Default)]
struct ReplyStream<R> {
    reply: R,
    /// The lines of a body that is not a stream.
    body: Option<Vec<u8>>,
}

impl Endpoint {
    /// Sends the body and reads events until the last one, or an error of any kind. Returns the reply and the time until its first byte.
    /// `counted` gets the tokens that the server has counted, also before an error: they are billed.
    pub(in crate::providers) async fn stream<R: StreamedReply>(
        &self,
        path: &str,
        plan: &Plan<'_>,
        body: Vec<u8>,
        events: &mut EventSink,
        deadline: &CallDeadline<'_>,
        counted: &mut Usage,
    ) -> Result<(R, Duration), Error> {
        let mut stream = ReplyStream::<R> { reply: R::default(), body: None };
        let read = self.read(path, plan, body, events, deadline, &mut stream).await;
        *counted = plan.plausible_usage(&stream.reply.counts(), false);
        Ok((stream.reply, read?))
    }

    /// Reads the stream to its end, and returns the time until its first byte.
    async fn read<R: StreamedReply>(
        &self,
        path: &str,
        plan: &Plan<'_>,
        body: Vec<u8>,
        events: &mut EventSink,
        deadline: &CallDeadline<'_>,
        stream: &mut ReplyStream<R>,
    ) -> Result<Duration, Error> {
        let started = Instant::now();
        let (config, timeouts) = (&self.config, &plan.request.timeouts);
        let first_byte = timeouts.first_byte.unwrap_or(config.first_byte_timeout());
        let idle = timeouts.idle.unwrap_or(config.idle_timeout());
        // The HTTP head may come long before the body: one step lasts until the first byte of the answer itself.
        let mut step = Step::begin(Activity::WaitingForAnswer, first_byte);
        let sent = self.post(path, body, plan.call(), step, deadline).await;
        // A refusal tells limits, too.
        if let Err(Error::Busy { told, .. }) = &sent {
            events.send_limits(**told);
        }
        let mut response = sent?;
        events.send_limits(ToldLimits::of(response.headers()));
        let mut lines = Lines::within(limits::of_answer(plan.request.reserve_tokens));
        let mut first_byte_took = None;
        loop {
            let chunk = self.next_chunk(&mut response, &stream.reply, step, deadline).await?;
            let took = *first_byte_took.get_or_insert_with(|| started.elapsed());
            let Some(chunk) = chunk else {
                show(&stream.end(lines.rest(), plan)?, events);
                return Ok(took);
            };
            step = Step::begin(Activity::ReadingAnswer, idle);
            let too_much = |source| Error::TooMuch { server: plan.server.clone(), source };
            lines.push(&chunk).map_err(too_much)?;
            while let Some(line) = lines.next_line().map_err(too_much)? {
                show(&stream.accept(line, plan)?, events);
                if stream.reply.is_done() {
                    return Ok(took);
                }
            }
        }
    }

    /// Returns the next bytes of the answer. A connection that breaks after a whole answer is its end: only token counts may be missing.
    async fn next_chunk<R: StreamedReply>(
        &self,
        response: &mut Response,
        reply: &R,
        step: Step,
        deadline: &CallDeadline<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        match self.chunk(response, step, deadline).await {
            Err(error) if error.is_of_transport() && reply.is_whole() => Ok(None),
            chunk => chunk,
        }
    }
}

impl<R: StreamedReply> ReplyStream<R> {
    fn accept(&mut self, line: &[u8], plan: &Plan<'_>) -> Result<Delta, Error> {
        if let Some(body) = &mut self.body {
            body.push(b'\n');
            body.extend_from_slice(line);
            return Ok(Delta::default());
        }
        match event_data(line) {
            Some([]) => Ok(Delta::default()),
            Some(data) => self.reply.accept(data, plan),
            None => {
                if matches!(line.first(), Some(b'{' | b'[' | b'<')) {
                    self.body = Some(line.to_vec());
                }
                Ok(Delta::default())
            }
        }
    }

    /// Ends the reply. The rest of the stream may be a last line without its line end, but not half a line.
    fn end(&mut self, rest: &[u8], plan: &Plan<'_>) -> Result<Delta, Error> {
        let ended_early =
            |reply: &R| Error::EndedEarly { server: plan.server.clone(), n_chars: reply.n_chars() };
        let last = match self.accept(rest, plan) {
            Err(Error::Malformed { .. }) if !self.reply.is_whole() => {
                return Err(ended_early(&self.reply));
            }
            Err(Error::Malformed { .. }) => Delta::default(),
            last => last?,
        };
        if let Some(body) = self.body.take() {
            if body.starts_with(b"<") {
                return Err(Error::NotTheApi { server: plan.server.clone(), status: 200 });
            }
            return self.reply.accept(&body, plan).and_then(|delta| match self.reply.is_whole() {
                true => Ok(delta),
                false => Err(ended_early(&self.reply)),
            });
        }
        match self.reply.is_whole() {
            true => Ok(Delta { text: last.text + &self.reply.release().text, ..last }),
            false => Err(ended_early(&self.reply)),
        }
    }
}

fn show(delta: &Delta, events: &mut EventSink) {
    if delta.began_thinking {
        events.send_status(Status::Thinking);
    }
    if delta.began_answering {
        events.send_status(Status::Answering);
    }
    events.send_text(&delta.text);
}
