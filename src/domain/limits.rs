//! Limits that callers can reach. Each module lists its own beside their constants, and the reference of limits is made from these lists.

/// A limit, and the effect of reaching it.
#[derive(Debug, Clone, Copy)]
pub struct LimitEntry {
    /// The limited thing, such as `tags of a task`.
    pub thing: &'static str,
    pub value: LimitValue,
    pub effect: LimitEffect,
}

#[derive(Debug, Clone, Copy)]
pub enum LimitValue {
    Fixed(u64),
    /// A setting with its smallest and its largest value. `None`: any number.
    Setting {
        key: &'static str,
        least: u64,
        most: Option<u64>,
    },
}

#[derive(Debug, Clone, Copy)]
pub enum LimitEffect {
    /// The request is refused with this code.
    Refused(&'static str),
    /// Full sentences.
    Sentence(&'static str),
}

impl LimitEntry {
    pub const fn fixed(thing: &'static str, most: u64, effect: LimitEffect) -> Self {
        Self { thing, value: LimitValue::Fixed(most), effect }
    }

    pub const fn setting(
        thing: &'static str,
        key: &'static str,
        (least, most): (u64, Option<u64>),
        effect: LimitEffect,
    ) -> Self {
        Self { thing, value: LimitValue::Setting { key, least, most }, effect }
    }
}
