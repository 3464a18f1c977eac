//! Files in requests over HTTP: limits and token estimates of each API, and the Base64 of a content.

use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::{
    context::{
        AttachmentRules,
        attachments::{Acceptance, FileTokens, ImageTokens, SentFile},
        manifest::PartReason,
    },
    transcript::{Attachment, FileKind},
};

const ALL_IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];
const PDF: &[&str] = &["application/pdf"];

/// Images on Anthropic's API: 5 MB as Base64, 8,000 pixels. One token per 750 pixels, after a reduction to 1,568 pixels and 1,600 tokens.
pub(super) const ANTHROPIC_IMAGES: SentFile = SentFile {
    media_types: ALL_IMAGES,
    max_bytes: 3_900_000,
    max_edge: 8_000,
    max_pages: 0,
    tokens: FileTokens::Image(ImageTokens::Pixels {
        pixels: 750,
        max_edge: 1568,
        max_tokens: 1600,
    }),
};
/// PDF on Anthropic's API: 100 pages. Each page is read as text and as a picture.
pub(super) const ANTHROPIC_PDF: SentFile = SentFile {
    media_types: PDF,
    max_bytes: 22_000_000,
    max_edge: 0,
    max_pages: 100,
    tokens: FileTokens::PerPage(4_000),
};
/// Images of chat completions: 85 tokens, and 170 for each tile of 512 pixels.
pub(super) const OPENAI_IMAGES: SentFile = SentFile {
    media_types: ALL_IMAGES,
    max_bytes: 20_000_000,
    max_edge: u32::MAX,
    max_pages: 0,
    tokens: FileTokens::Image(ImageTokens::Tiles { base: 85, tile: 170 }),
};
/// PDF of chat completions. Each page is read as text and as a picture.
pub(super) const OPENAI_PDF: SentFile = SentFile {
    media_types: PDF,
    max_bytes: 30_000_000,
    max_edge: 0,
    max_pages: 100,
    tokens: FileTokens::PerPage(2_000),
};
/// Images on Ollama. Models differ: from 256 tokens for each image to one for each 28 x 28 pixels.
pub(super) const OLLAMA_IMAGES: SentFile = SentFile {
    media_types: &["image/png", "image/jpeg"],
    max_bytes: 20_000_000,
    max_edge: u32::MAX,
    max_pages: 0,
    tokens: FileTokens::Image(ImageTokens::Pixels {
        pixels: 784,
        max_edge: 2048,
        max_tokens: 1600,
    }),
};

/// Builds the rules of an API: requests of Anthropic have at most 32 MB, and images of more than 20 have to be small; the limits of other
/// servers are higher or unknown.
pub(super) fn rules(images: Option<SentFile>, pdf: Option<SentFile>) -> AttachmentRules {
    let acceptance = |sent: Option<SentFile>| match sent {
        Some(sent) => Acceptance::Sent(sent),
        None => Acceptance::Never(PartReason::FileNotAccepted),
    };
    AttachmentRules {
        images: acceptance(images),
        pdf: acceptance(pdf),
        max_files: 20,
        max_bytes: 22_000_000,
    }
}

/// Returns the content of a file in Base64.
pub(super) fn base64(file: &Attachment) -> String {
    BASE64_STANDARD.encode(file.content.as_deref().unwrap_or_default())
}

/// Returns the content of a file as a URL.
pub(super) fn data_url(file: &Attachment) -> String {
    format!("data:{};base64,{}", file.media_type, base64(file))
}

pub(super) fn is_pdf(file: &Attachment) -> bool {
    matches!(file.kind, FileKind::Pdf { .. })
}
