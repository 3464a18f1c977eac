//! Facts about images and PDFs, read from their bytes, and the tokens of an image.

/// Tokens of an image by its size, as a provider documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageTokens {
    /// One token per `pixels`, after a reduction to `max_edge` and to `max_tokens`.
    Pixels { pixels: u64, max_edge: u64, max_tokens: u64 },
    /// `base` and `tile` for each square of 512 pixels, after a reduction to 2048 pixels, and of the shorter edge to 768.
    Tiles { base: u64, tile: u64 },
}

/// Longest edge of an image in tiles, and its shorter edge.
const TILED_EDGES: (u64, u64) = (2048, 768);
const TILE_EDGE: u64 = 512;
/// Bytes of a JPEG in which its size is looked for: it stands behind pictures of cameras and colour profiles.
const JPEG_HEAD_BYTES: usize = 1 << 20;

impl ImageTokens {
    /// Returns the tokens of an image. One of unknown size counts as the largest.
    pub fn of(self, pixels: Option<(u32, u32)>) -> u64 {
        let edges = pixels.map(|(width, height)| (u64::from(width), u64::from(height)));
        match self {
            Self::Pixels { pixels, max_edge, max_tokens } => match edges {
                Some((width, height)) => {
                    let (width, height) = fit(width, height, max_edge);
                    (width * height).div_ceil(pixels).clamp(1, max_tokens)
                }
                None => max_tokens,
            },
            Self::Tiles { base, tile } => {
                let (long, short) = TILED_EDGES;
                let (width, height) = edges.unwrap_or((long, short));
                let (width, height) = fit(width, height, long);
                let (width, height) = match width.min(height) {
                    least if least > short => (width * short / least, height * short / least),
                    _ => (width, height),
                };
                base + tile * width.max(1).div_ceil(TILE_EDGE) * height.max(1).div_ceil(TILE_EDGE)
            }
        }
    }
}

/// Reduces a size to a longest edge, in proportion.
fn fit(width: u64, height: u64, edge: u64) -> (u64, u64) {
    match width.max(height) {
        longest if longest > edge => {
            ((width * edge / longest).max(1), (height * edge / longest).max(1))
        }
        _ => (width.max(1), height.max(1)),
    }
}

/// Reads width and height of an image from its header. `None`: the header does not tell them.
pub fn pixels_of(content: &[u8]) -> Option<(u32, u32)> {
    let size = match content {
        [0x89, b'P', b'N', b'G', ..] => (big_u32(content, 16)?, big_u32(content, 20)?),
        [b'G', b'I', b'F', b'8', ..] => (little_u16(content, 6)?, little_u16(content, 8)?),
        [0xff, 0xd8, ..] => jpeg_pixels(&content[..content.len().min(JPEG_HEAD_BYTES)])?,
        [b'R', b'I', b'F', b'F', ..] => webp_pixels(content)?,
        _ => return None,
    };
    (size.0 > 0 && size.1 > 0).then_some(size)
}

/// Follows the segments of a JPEG to the frame, which has its size.
fn jpeg_pixels(content: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let &[0xff, marker] = content.get(at..at + 2)? else { return None };
        match marker {
            // Fill bytes, and markers without a segment.
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((big_u16(content, at + 7)?, big_u16(content, at + 5)?));
            }
            _ => at += 2 + usize::try_from(big_u16(content, at + 2)?).ok()?.max(2),
        }
    }
}

fn webp_pixels(content: &[u8]) -> Option<(u32, u32)> {
    match content.get(12..16)? {
        b"VP8X" => Some((little_u24(content, 24)? + 1, little_u24(content, 27)? + 1)),
        b"VP8L" => {
            let bits = u32::from_le_bytes(content.get(21..25)?.try_into().ok()?);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8 " => Some((little_u16(content, 26)? & 0x3fff, little_u16(content, 28)? & 0x3fff)),
        _ => None,
    }
}

/// Counts the pages that a PDF lists in the clear. `None`: it lists none, because newer files compress the list.
pub fn pages_of(content: &[u8]) -> Option<u32> {
    const TYPE: &[u8] = b"/Type";
    let mut n_pages = 0;
    let mut rest = content;
    while let Some(at) = rest.windows(TYPE.len()).position(|window| window == TYPE) {
        rest = &rest[at + TYPE.len()..];
        let name = rest.trim_ascii_start();
        // The tree of pages has the type `/Pages`.
        let is_page = name
            .strip_prefix(b"/Page")
            .is_some_and(|rest| rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric()));
        n_pages += u32::from(is_page);
    }
    (n_pages > 0).then_some(n_pages)
}

fn big_u32(content: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(content.get(at..at + 4)?.try_into().ok()?))
}

fn big_u16(content: &[u8], at: usize) -> Option<u32> {
    Some(u16::from_be_bytes(content.get(at..at + 2)?.try_into().ok()?).into())
}

fn little_u16(content: &[u8], at: usize) -> Option<u32> {
    Some(u16::from_le_bytes(content.get(at..at + 2)?.try_into().ok()?).into())
}

fn little_u24(content: &[u8], at: usize) -> Option<u32> {
    let &[low, middle, high] = content.get(at..at + 3)? else { return None };
    Some(u32::from_le_bytes([low, middle, high, 0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_headers_of_images() {
        let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[0, 0, 2, 0, 0, 0, 1, 0]].concat();
        assert_eq!(pixels_of(&png), Some((512, 256)));
        assert_eq!(pixels_of(b"GIF89a\x40\x01\xf0\x00"), Some((320, 240)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04JF\xff\xff\xc2\0\x11\x08\x00\xf0\x01\x40\x03";
        assert_eq!(pixels_of(jpeg), Some((320, 240)));
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\x01\0\xef\0\0";
        assert_eq!(pixels_of(extended), Some((320, 240)));
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xf0\0";
        assert_eq!(pixels_of(lossy), Some((320, 240)));
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x3f\xc1\x3b\0";
        assert_eq!(pixels_of(lossless), Some((320, 240)));
    }

    #[test]
    fn broken_headers_tell_no_size() {
        for content in [
            &png_head(4)[..],
            b"\xff\xd8\xff",
            b"\xff\xd8\xff\xe0\0\0",
            b"RIFFxxxxWEBPVP8X",
            b"x",
            b"",
        ] {
            assert_eq!(pixels_of(content), None, "{content:?}");
        }
    }

    fn png_head(n_bytes: usize) -> Vec<u8> {
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..n_bytes].to_vec()
    }

    #[test]
    fn pages_of_a_pdf_are_counted_and_its_tree_is_not() {
        let pdf = b"%PDF-1.4\n<</Type /Pages /Count 2>> <</Type/Page>> <</Type /Page\n>> <</Type /Catalog>>";
        assert_eq!(pages_of(pdf), Some(2));
        assert_eq!(pages_of(b"%PDF-1.7 /ObjStm"), None);
    }

    #[test]
    fn tokens_of_images_follow_the_documented_formulas() {
        let pixels = ImageTokens::Pixels { pixels: 750, max_edge: 1568, max_tokens: 1600 };
        assert_eq!(pixels.of(Some((1000, 1000))), 1334);
        assert_eq!(pixels.of(Some((200, 200))), 54);
        assert_eq!(pixels.of(Some((4000, 3000))), 1600);
        assert_eq!(pixels.of(Some((10_000, 100))), 32);
        assert_eq!(pixels.of(None), 1600);
        let tiles = ImageTokens::Tiles { base: 85, tile: 170 };
        assert_eq!(tiles.of(Some((1024, 1024))), 765);
        assert_eq!(tiles.of(Some((2048, 4096))), 1105);
        assert_eq!(tiles.of(Some((100, 100))), 255);
    }
}
