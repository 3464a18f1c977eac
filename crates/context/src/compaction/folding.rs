//! One compaction from plan to outcome, without IO. It returns a question, is given the answer, and ends either with a
//! new generation or with a call for a person.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{
    compaction::{
        accept::{Gates, Refusal},
        division::Division,
        extract,
        generations::Compaction,
        ladder::{CompactionStep, CompactionSteps},
        pins::{self, Pin},
        plan::{self, CompactionInput, Plan},
        policy::Policy,
        prompt::{self, Question, Request},
        prompts::{self, Selection},
        reference,
    },
    weight::Weight,
    xml::{FenceSeed, Scope},
};

pub struct FoldDraft<'a> {
    scene: CompactionInput<'a>,
    seed: &'a FenceSeed,
    plan: Plan,
    /// Prompts of people that stay, and sentences that a summariser may add to them.
    prompts: Selection,
    /// Lines of answers that the summariser offers as quotes.
    quotes: Vec<String>,
    pins: Vec<Pin>,
    pins_dropped: usize,
    generation: u32,
    ladder: CompactionSteps,
    rung: CompactionStep,
    refused: Vec<RefusedAttempt>,
    /// Index of the current batch.
    batch: usize,
    so_far: Option<String>,
    /// Indices of the pins in the batches up to the current one.
    read_pins: HashSet<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A question for the summariser of this rung. The caller then calls [`FoldDraft::process_answer`].
    Ask {
        rung: CompactionStep,
        request: Request,
        /// True for the first batch of an attempt. The breaker counts an attempt once, even if it takes several batches.
        begins_attempt: bool,
    },
    Done(Outcome),
    /// Even the extract was refused.
    Park {
        refused: Vec<RefusedAttempt>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub compaction: Compaction,
    /// Rung that made the summary.
    pub rung: CompactionStep,
    pub refused: Vec<RefusedAttempt>,
    /// Number of strings that looked worth pinning but had no room.
    pub pins_dropped: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedAttempt {
    pub rung: CompactionStep,
    pub refusals: Vec<Refusal>,
}

impl<'a> FoldDraft<'a> {
    /// Begins a compaction. `generation` is the number that the result will have.
    pub fn begin(
        scene: CompactionInput<'a>,
        seed: &'a FenceSeed,
        generation: u32,
        mut ladder: CompactionSteps,
    ) -> Result<(Self, Step), plan::Error> {
        let (plan, Division { prompts, pins: selection, .. }) = plan::plan_with_texts(&scene)?;
        let rung = if plan.batches.is_empty() { CompactionStep::Extract } else { ladder.start() };
        let mut folding = Self {
            scene,
            seed,
            prompts,
            quotes: Vec::new(),
            pins: selection.pins,
            pins_dropped: selection.dropped,
            generation,
            ladder,
            rung,
            refused: refuse_without_asking(&scene, &plan),
            plan,
            batch: 0,
            so_far: None,
            read_pins: HashSet::new(),
        };
        let step = match folding.plan.is_reference {
            true => folding.end_with_reference(),
            false => folding.enter_rung(),
        };
        Ok((folding, step))
    }

    /// Continues with an answer. `Err` is the reason why there is none.
    pub fn process_answer(&mut self, answer: Result<&str, String>) -> Step {
        let is_last = self.batch + 1 == self.plan.batches.len();
        let judged = match answer.map(prompts::take_quotes) {
            Ok((text, quotes)) => {
                // Quotes count even if the rest of the answer is refused.
                self.quotes.extend(quotes);
                self.check_answer(&text, is_last)
            }
            Err(reason) => Err(vec![Refusal::NoAnswer { reason }]),
        };
        match judged {
            Ok(summary) if is_last => self.done(summary),
            Ok(summary) => {
                self.so_far = Some(summary);
                self.batch += 1;
                self.ask(false)
            }
            Err(refusals) => self.try_next_rung(refusals),
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    fn check_answer(&self, text: &str, is_last: bool) -> Result<String, Vec<Refusal>> {
        if is_last {
            return self.gates().check_summary(text, &self.pins);
        }
        let read = self.read_pins.iter().map(|index| &self.pins[*index]);
        self.gates().check_summary(text, read)
    }

    fn try_next_rung(&mut self, refusals: Vec<Refusal>) -> Step {
        self.refused.push(RefusedAttempt { rung: self.rung, refusals });
        self.rung = self.ladder.next(self.rung);
        self.enter_rung()
    }

    fn enter_rung(&mut self) -> Step {
        match self.rung {
            CompactionStep::First | CompactionStep::Retry | CompactionStep::Alternate => {
                self.batch = 0;
                self.so_far = self.previous_summary().map(str::to_owned);
                self.read_pins = self.carried_pins();
                self.ask(true)
            }
            CompactionStep::Extract => {
                let text = extract::extract(
                    self.previous_summary(),
                    &self.scene.view.tail[self.plan.read.clone()],
                    &self.pins,
                    self.target_tokens(),
                    self.scene.calibration,
                );
                match self.gates().check_summary(&text, &self.pins) {
                    Ok(summary) => self.done(summary),
                    Err(refusals) => self.try_next_rung(refusals),
                }
            }
            CompactionStep::Park if self.scene.is_overflowing() => self.end_with_reference(),
            CompactionStep::Park => Step::Park { refused: std::mem::take(&mut self.refused) },
        }
    }

    /// Ends with a reference instead of a summary, because the coming turn leaves no room for one.
    fn end_with_reference(&mut self) -> Step {
        self.rung = CompactionStep::Extract;
        self.plan = plan::reference(&self.scene);
        self.done(reference::text())
    }

    fn ask(&mut self, begins_attempt: bool) -> Step {
        self.read_batch();
        let batches = &self.plan.batches;
        let is_last = self.batch + 1 == batches.len();
        let pins: Vec<_> = self
            .pins
            .iter()
            .enumerate()
            .filter(|(index, _)| is_last || self.read_pins.contains(index))
            .map(|(_, pin)| pin)
            .collect();
        let quotes = plan::quotes_room(&self.scene, &self.plan, &self.prompts);
        let leaving_max = self.scene.calibration.weight_within(quotes.leaving_tokens);
        let leaving = match is_last {
            true => self.prompts.removed_prompts(leaving_max),
            false => Vec::new(),
        };
        let question = Question {
            leaving: &leaving,
            quotes_tokens: quotes.answer_tokens,
            entries: self.scene.view.tail,
            batch: &batches[self.batch],
            number: self.batch + 1,
            count: batches.len(),
            so_far: self.so_far.as_deref(),
            pins: &pins,
            refusals: self.last_refusals(),
            target_tokens: self.target_tokens(),
            max_tokens: self.plan.summary_max_tokens,
        };
        let to_seq = self.plan.to_seq;
        Step::Ask {
            rung: self.rung,
            request: prompt::request(&question, &self.seed.fence(Scope::Folding { to_seq })),
            begins_attempt,
        }
    }

    /// Marks the pins of the batch as read. A pin counts as read once its message has been read to its end.
    fn read_batch(&mut self) {
        let entries = self.scene.view.tail;
        for piece in &self.plan.batches[self.batch].pieces {
            if piece.part == piece.parts {
                let entry = std::slice::from_ref(&entries[piece.index]);
                let found = pins::collect(&[], entry);
                let read = self.pins.iter().enumerate();
                let read = read.filter(|(_, pin)| found.contains(&pin.text));
                self.read_pins.extend(read.map(|(index, _)| index));
            }
        }
    }

    fn carried_pins(&self) -> HashSet<usize> {
        let carried = self.scene.view.compaction.map_or(&[][..], |compaction| &compaction.pins);
        let carried: HashSet<_> = carried.iter().map(|pin| pin.text.as_str()).collect();
        let kept = self.pins.iter().enumerate();
        let kept = kept.filter(|(_, pin)| carried.contains(pin.text.as_str()));
        kept.map(|(index, _)| index).collect()
    }

    /// Returns the last refusals. The alternate model did not cause them, but may make the same mistake.
    fn last_refusals(&self) -> &[Refusal] {
        self.refused.last().map_or(&[], |attempt| &attempt.refusals)
    }

    /// Returns the summary to continue from. That of messages before the node is archived with them.
    fn previous_summary(&self) -> Option<&'a str> {
        let goes_on = self.scene.node.is_none_or(|node| node.is_continued);
        self.scene.view.compaction.filter(|_| goes_on).map(|compaction| compaction.summary.as_str())
    }

    fn target_tokens(&self) -> u64 {
        let pins = pins::list_tokens(&self.pins, self.scene.calibration);
        let prose = Policy::prose_tokens(self.scene.budget.window_tokens());
        (pins + prose).min(self.plan.summary_max_tokens * 9 / 10)
    }

    fn gates(&self) -> Gates<'a> {
        Gates {
            calibration: self.scene.calibration,
            max_tokens: self.plan.summary_max_tokens,
            tokens_before: self.plan.tokens_before,
            tail_tokens: self.plan.tail_tokens,
        }
    }

    fn done(&mut self, summary: String) -> Step {
        let summary_tokens = self.scene.calibration.tokens(Weight::of_text(&summary));
        let prompts = std::mem::take(&mut self.prompts).with_quotes(&self.quotes);
        let prompts_weight = match self.plan.is_reference {
            true => Weight::ZERO,
            false => prompts.weight(),
        };
        let prompts_tokens = self.scene.calibration.tokens(prompts_weight);
        let flow = self.scene.node.map(|node| node.flow_to(self.plan.to_seq));
        let flow_tokens =
            flow.as_ref().map_or(0, |flow| self.scene.calibration.tokens(flow.weight()));
        Step::Done(Outcome {
            compaction: Compaction {
                generation: self.generation,
                parent: self.scene.view.generation(),
                from_seq: self.plan.from_seq,
                to_seq: self.plan.to_seq,
                summary,
                flow: flow.map(|flow| Box::new(flow.into_owned())),
                prompts,
                pins: std::mem::take(&mut self.pins),
                tokens_before: self.plan.tokens_before,
                tokens_after: self.plan.tail_tokens + flow_tokens + prompts_tokens + summary_tokens,
            },
            rung: self.rung,
            refused: std::mem::take(&mut self.refused),
            pins_dropped: self.pins_dropped,
        })
    }
}

/// Records a refusal without asking a model, because the question would not fit its window.
fn refuse_without_asking(scene: &CompactionInput<'_>, plan: &Plan) -> Vec<RefusedAttempt> {
    // Messages that are archived whole need no summary, only their pins.
    if !plan.batches.is_empty() || plan.read.is_empty() {
        return Vec::new();
    }
    let reason = format!(
        "the summariser's window of {} tokens is too small for a summary of {}: configure a summariser with a larger window",
        scene.summariser_window_tokens, plan.summary_max_tokens,
    );
    vec![RefusedAttempt {
        rung: CompactionStep::First,
        refusals: vec![Refusal::NoAnswer { reason }],
    }]
}
