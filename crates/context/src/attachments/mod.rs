//! Files that belong to the prompt of a task, and the way in which a call sends each of them.
//!
//! A text stands in the message, escaped like the prompt. An image or a PDF is sent beside the text ([`Media`]), is placed as a file in the
//! folder of an agent that works in one, or is described in one line with the reason. The decision is made once per call, in
//! [`Treatments::decide`]; the manifest records it, so that a replay renders the same.

mod measure;

use std::{collections::HashMap, sync::Arc};

use uuid::Uuid;

pub use self::measure::{ImageTokens, pages_of, pixels_of};
use crate::{
    conversation::Rendering,
    digest::Digest,
    entry::Entry,
    manifest::{Kind, Ledger, Manifest, Part, PartReason},
    transcript::{Attachment, FileKind, Media, Message},
    weight::Weight,
    xml::{Element, Scope},
};

/// Files that a model accepts beside the text of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachmentRules {
    pub images: Acceptance,
    pub pdf: Acceptance,
    /// Files of one call beside its text.
    pub max_files: usize,
    /// Bytes of all files of one call beside its text.
    pub max_bytes: u64,
}

/// Way in which a model gets files of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// Described, for this reason.
    Never(PartReason),
    /// As a part of the message.
    Sent(SentFile),
    /// As a file in the folder of the agent, which reads it by itself.
    Placed,
}

/// Limits of one file, and the estimate of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentFile {
    pub media_types: &'static [&'static str],
    pub max_bytes: u64,
    /// Longest edge of an image in pixels.
    pub max_edge: u32,
    /// Most pages of a PDF.
    pub max_pages: u32,
    pub tokens: FileTokens,
}

/// Estimate of the tokens of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTokens {
    Image(ImageTokens),
    /// For each page of a PDF: its text and its picture.
    PerPage(u64),
}

/// Way in which a call has one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Its text stands in the message.
    Text,
    /// It is sent beside the text, with about this many tokens.
    Sent {
        tokens: u64,
    },
    /// It is a file in the folder of the agent.
    Placed,
    Described(PartReason),
}

/// Ways in which a call has the files of its prompts, by the task and the position of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Treatments(HashMap<(Uuid, i32), Treatment>);

/// Bytes of a page of a PDF that does not list its pages.
const PAGE_BYTES: u64 = 50_000;
/// Tokens of a file before a call decides how it is sent: those of a large image.
const TYPICAL_TOKENS: u64 = 1_600;
/// The weight of the element around a file.
const ELEMENT_MILLITOKENS: u64 = 30_000;

impl Attachment {
    pub(crate) fn digest(&self) -> Digest {
        Digest::from_bytes(self.sha256)
    }

    /// Returns the path below the folder of the agent. Files of the same name in one conversation have different paths.
    pub fn path(&self) -> String {
        let digest = self.digest().to_string();
        format!("in/{}/{}", digest.get(..8).unwrap_or(&digest), self.name)
    }

    /// Returns the text of a text file.
    pub fn text(&self) -> Option<&str> {
        match self.kind {
            FileKind::Text => std::str::from_utf8(self.content.as_deref()?).ok(),
            FileKind::Image { .. } | FileKind::Pdf { .. } => None,
        }
    }

    /// Returns the weight before a call decides how the file is sent.
    pub fn weight(&self) -> Weight {
        let element = Weight::from_millitokens(ELEMENT_MILLITOKENS);
        element
            + match self.kind {
                FileKind::Text => self.text().map_or(Weight::ZERO, Weight::of_text),
                FileKind::Image { .. } => Weight::from_millitokens(TYPICAL_TOKENS * 1000),
                FileKind::Pdf { .. } => {
                    Weight::from_millitokens(self.n_pages() * TYPICAL_TOKENS * 1000)
                }
            }
    }

    fn n_pages(&self) -> u64 {
        match self.kind {
            FileKind::Pdf { pages: Some(pages) } => u64::from(pages.max(1)),
            _ => self.n_bytes.div_ceil(PAGE_BYTES).max(1),
        }
    }

    /// Returns the way in which a call with these rules has the file, if its limits for all files allow it.
    fn treatment(&self, rules: &AttachmentRules) -> Treatment {
        if self.content.is_none() {
            return Treatment::Described(PartReason::FileRemoved);
        }
        let acceptance = match self.kind {
            FileKind::Text if self.text().is_some() => return Treatment::Text,
            FileKind::Text => Acceptance::Never(PartReason::FileNotAccepted),
            FileKind::Image { .. } => rules.images,
            FileKind::Pdf { .. } => rules.pdf,
        };
        match acceptance {
            Acceptance::Never(why) => Treatment::Described(why),
            Acceptance::Placed => Treatment::Placed,
            Acceptance::Sent(sent) if !sent.media_types.contains(&self.media_type.as_str()) => {
                Treatment::Described(PartReason::FileNotAccepted)
            }
            Acceptance::Sent(sent) if self.exceeds(&sent) => {
                Treatment::Described(PartReason::FileTooLarge)
            }
            Acceptance::Sent(sent) => Treatment::Sent { tokens: self.tokens(sent.tokens) },
        }
    }

    fn exceeds(&self, sent: &SentFile) -> bool {
        self.n_bytes > sent.max_bytes
            || match self.kind {
                FileKind::Image { pixels } => {
                    pixels.is_some_and(|(width, height)| width.max(height) > sent.max_edge)
                }
                FileKind::Pdf { pages } => pages.is_some_and(|pages| pages > sent.max_pages),
                FileKind::Text => false,
            }
    }

    fn tokens(&self, tokens: FileTokens) -> u64 {
        match (tokens, self.kind) {
            (FileTokens::Image(tokens), FileKind::Image { pixels }) => tokens.of(pixels),
            (FileTokens::Image(tokens), _) => tokens.of(None),
            (FileTokens::PerPage(tokens), _) => tokens.saturating_mul(self.n_pages()),
        }
    }

    /// Builds the element that stands for the file in the text of the message.
    fn element(&self, treatment: Treatment) -> Element<'_> {
        let text = match treatment {
            Treatment::Text => self.text().unwrap_or_default(),
            _ => "",
        };
        let element = self.named(text);
        match treatment {
            Treatment::Text => element,
            Treatment::Sent { .. } => element.attribute("content", "directly after this element"),
            Treatment::Placed => element.attribute("file", self.path()),
            Treatment::Described(why) => element.attribute("not_included", why.as_text()),
        }
    }

    fn named<'a>(&'a self, text: &'a str) -> Element<'a> {
        Element::with_text("attachment", text)
            .attribute("name", self.name.as_str())
            .attribute("type", self.media_type.as_str())
            .attribute("bytes", self.n_bytes.to_string())
    }
}

impl AttachmentRules {
    /// Describes images and PDFs, for this reason.
    pub const fn described(why: PartReason) -> Self {
        let (images, pdf) = (Acceptance::Never(why), Acceptance::Never(why));
        Self { images, pdf, max_files: 0, max_bytes: 0 }
    }

    /// Places images and PDFs in the folder of the agent.
    pub const PLACED: Self = Self {
        images: Acceptance::Placed,
        pdf: Acceptance::Placed,
        max_files: usize::MAX,
        max_bytes: u64::MAX,
    };
}

impl Treatments {
    /// Decides how a call has the files of its task and of the prompts before it. If they are too many for one call, the newest are sent.
    pub fn decide<'a>(
        rules: &AttachmentRules,
        task: (Uuid, &'a [Arc<Attachment>]),
        before: impl DoubleEndedIterator<Item = &'a Entry>,
    ) -> Self {
        let before = before.rev().map(|entry| (entry.id, entry.attachments()));
        let (mut treatments, mut n_files, mut n_bytes) = (HashMap::new(), 0_usize, 0_u64);
        for (id, attachments) in [task].into_iter().chain(before) {
            for attachment in attachments {
                let mut treatment = attachment.treatment(rules);
                if let Treatment::Sent { .. } = treatment {
                    let bytes_with = n_bytes.saturating_add(attachment.n_bytes);
                    if n_files >= rules.max_files || bytes_with > rules.max_bytes {
                        treatment = Treatment::Described(PartReason::TooManyFiles);
                    } else {
                        (n_files, n_bytes) = (n_files + 1, bytes_with);
                    }
                }
                treatments.insert((id, attachment.position), treatment);
            }
        }
        Self(treatments)
    }

    /// Reads the decisions of a call that was made.
    pub fn of_manifest(manifest: &Manifest) -> Self {
        let files = manifest.parts.iter().filter(|part| part.kind == Kind::Attachment);
        let treatment = |part: &Part| {
            let id = part_place(part)?;
            Some((id, recorded(part)))
        };
        Self(files.filter_map(treatment).collect())
    }

    /// Returns the way of a file; `None` if the call does not have it at all.
    pub(crate) fn of(&self, task_id: Uuid, attachment: &Attachment) -> Option<Treatment> {
        let treatment = self.0.get(&(task_id, attachment.position)).copied()?;
        Some(match (treatment, attachment.kind) {
            // A manifest does not tell them apart.
            (Treatment::Sent { .. }, FileKind::Text) => Treatment::Text,
            (treatment, _) => treatment,
        })
    }
}

/// Returns the task and the position that a line of a manifest names.
pub(crate) fn part_place(part: &Part) -> Option<(Uuid, i32)> {
    let (task_id, rest) = part.id.as_deref()?.split_once('/')?;
    let position = rest.split(' ').next()?;
    Some((task_id.parse().ok()?, position.parse().ok()?))
}

fn recorded(part: &Part) -> Treatment {
    match part.why {
        PartReason::PlacedAsFile => Treatment::Placed,
        _ if part.sent => Treatment::Sent { tokens: part.tokens },
        why => Treatment::Described(why),
    }
}

/// Adds the files of a prompt after its text.
pub(crate) fn append_to(
    message: &mut Message,
    (task_id, attachments): (Uuid, &[Arc<Attachment>]),
    Rendering { seed, treatments }: Rendering<'_>,
) {
    let fence = seed.fence(Scope::Entry(task_id));
    for attachment in attachments {
        // A call of an older version has none of it.
        let Some(treatment) = treatments.of(task_id, attachment) else { continue };
        message.text.push_str("\n\n");
        message.text.push_str(&attachment.element(treatment).render(&fence));
        if let Treatment::Sent { .. } | Treatment::Placed = treatment {
            let (at, attachment) = (message.text.len(), Arc::clone(attachment));
            message.media.push(Media { at, attachment });
        }
    }
}

/// Records the files of a prompt, each in a line.
pub(crate) fn record(
    (task_id, attachments): (Uuid, &[Arc<Attachment>]),
    why: PartReason,
    treatments: &Treatments,
    ledger: &mut Ledger<'_>,
) -> Weight {
    let mut total = Weight::ZERO;
    for attachment in attachments {
        let Some(treatment) = treatments.of(task_id, attachment) else { continue };
        let element = Weight::from_millitokens(ELEMENT_MILLITOKENS);
        let (why, weight) = match treatment {
            Treatment::Text => (why, attachment.weight()),
            Treatment::Sent { tokens } => {
                (why, element + Weight::from_millitokens(tokens.saturating_mul(1000)))
            }
            Treatment::Placed => (PartReason::PlacedAsFile, element),
            Treatment::Described(reason) => (reason, element),
        };
        total = total + weight;
        let id = format!("{task_id}/{} {}", attachment.position, attachment.name);
        let sent = !matches!(treatment, Treatment::Described(_));
        ledger.attachment(id, why, attachment.digest(), weight, sent);
    }
    total
}

/// Replaces the files of a message that a model does not accept by a line with the reason: of a call that is made again on another model.
pub fn leave_out(message: &mut Message, rules: &AttachmentRules) {
    let (mut text, mut media, mut from) = (String::new(), Vec::new(), 0);
    for file in std::mem::take(&mut message.media) {
        text.push_str(&message.text[from..file.at]);
        from = file.at;
        match file.attachment.treatment(rules) {
            Treatment::Described(why) => {
                text.push_str(&format!("\n[not included: {}]", why.as_text()));
            }
            _ => media.push(Media { at: text.len(), ..file }),
        }
    }
    text.push_str(&message.text[from..]);
    (message.text, message.media) = (text, media);
}

/// Returns the weight of the files of a prompt before a call decides how they are sent.
pub fn weight_of(attachments: &[Arc<Attachment>]) -> Weight {
    attachments.iter().map(|attachment| attachment.weight()).sum()
}

/// Builds the elements that name files where they are not sent: in the request to a summariser.
pub(crate) fn named(attachments: &[Arc<Attachment>]) -> impl Iterator<Item = Element<'_>> {
    attachments.iter().map(|attachment| attachment.named(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGES: SentFile = SentFile {
        media_types: &["image/png"],
        max_bytes: 100,
        max_edge: 50,
        max_pages: 0,
        tokens: FileTokens::Image(ImageTokens::Tiles { base: 85, tile: 170 }),
    };
    const RULES: AttachmentRules = AttachmentRules {
        images: Acceptance::Sent(IMAGES),
        pdf: Acceptance::Never(PartReason::FileNotAccepted),
        max_files: 2,
        max_bytes: 150,
    };

    fn image(position: i32, n_bytes: usize, edge: u32) -> Arc<Attachment> {
        Arc::new(Attachment {
            position,
            name: format!("{position}.png"),
            media_type: "image/png".to_owned(),
            n_bytes: n_bytes as u64,
            sha256: [7; 32],
            kind: FileKind::Image { pixels: Some((edge, 10)) },
            content: Some(vec![0; n_bytes].into()),
        })
    }

    fn prompt(id: u128, files: Vec<Arc<Attachment>>) -> Entry {
        let message = Message::new(crate::transcript::Role::User, "Look.");
        let mut entry = Entry::new(Uuid::from_u128(id), id as i64, message);
        entry.attach(files);
        entry
    }

    #[test]
    fn the_newest_files_are_sent_and_each_other_one_has_a_reason() {
        let before = [prompt(1, vec![image(1, 10, 10)]), prompt(2, vec![image(1, 10, 10)])];
        let own = [image(1, 10, 10), image(2, 101, 10), image(3, 10, 51)];
        let task = Uuid::from_u128(3);
        let decided = Treatments::decide(&RULES, (task, &own), before.iter());
        let of = |id: u128, file: &Attachment| decided.of(Uuid::from_u128(id), file).unwrap();
        assert_eq!(of(3, &own[0]), Treatment::Sent { tokens: 255 });
        let too_large = Treatment::Described(PartReason::FileTooLarge);
        assert_eq!([of(3, &own[1]), of(3, &own[2])], [too_large; 2]);
        assert_eq!(of(2, &own[0]), Treatment::Sent { tokens: 255 });
        assert_eq!(of(1, &own[0]), Treatment::Described(PartReason::TooManyFiles));
        let removed = Attachment { content: None, ..Attachment::clone(&own[0]) };
        assert_eq!(removed.treatment(&RULES), Treatment::Described(PartReason::FileRemoved));
        let files = [image(1, 100, 10), image(2, 60, 10)];
        let decided = Treatments::decide(&RULES, (task, &files), [].iter());
        let second = decided.of(task, &files[1]).unwrap();
        assert_eq!(second, Treatment::Described(PartReason::TooManyFiles));
    }

    #[test]
    fn a_file_that_another_model_does_not_accept_is_replaced_by_the_reason() {
        let (small, large) = (image(1, 10, 10), image(2, 101, 10));
        let media = [(5, large), (9, small)];
        let media = media.map(|(at, attachment)| Media { at, attachment }).into();
        let mut message =
            Message { media, ..Message::new(crate::transcript::Role::User, "First and last") };
        leave_out(&mut message, &RULES);
        let text = "First\n[not included: larger than the provider accepts] and last";
        assert_eq!(message.text, text);
        assert_eq!(
            (message.media.len(), &text[..message.media[0].at]),
            (1, text.strip_suffix(" last").unwrap())
        );
    }

    #[test]
    fn the_weight_of_an_entry_includes_its_files() {
        let entry = prompt(1, vec![image(1, 10, 10)]);
        assert_eq!(entry.text_weight() + entry.attachments()[0].weight(), entry.weight);
    }

    #[test]
    fn a_summary_has_to_name_the_files() {
        let entry = prompt(1, vec![image(1, 10, 10)]);
        let pins = crate::compaction::pins::collect(&[], std::slice::from_ref(&entry));
        assert!(pins.by_importance().iter().any(|pin| pin.text == "1.png"));
    }
}
