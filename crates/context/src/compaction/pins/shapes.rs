//! Recognises the kind of a word by its shape alone.
//!
//! Written by hand rather than as regular expressions: each rule looks at one short word, and a long
//! history has millions of them.

use super::PinKind;

const IDENTIFIER_CHARS: std::ops::RangeInclusive<usize> = 3..=64;
const HOSTS: [&str; 12] =
    ["com", "org", "net", "io", "dev", "de", "eu", "uk", "ch", "at", "fr", "app"];
const EXTENSIONS: [&str; 41] = [
    "c", "cfg", "conf", "css", "csv", "doc", "docx", "go", "h", "html", "ini", "java", "jpeg",
    "jpg", "js", "json", "jsonl", "lock", "log", "md", "mp3", "mp4", "odt", "pdf", "png", "pptx",
    "psd", "py", "rs", "sh", "sql", "svg", "toml", "ts", "tsx", "txt", "xls", "xlsx", "xml",
    "yaml", "yml",
];
const UNITS: [&str; 61] = [
    "%",
    "°c",
    "°f",
    "b",
    "bar",
    "bytes",
    "characters",
    "chf",
    "cm",
    "day",
    "days",
    "dollars",
    "dpi",
    "eur",
    "euros",
    "ft",
    "g",
    "gb",
    "gbp",
    "ghz",
    "gib",
    "h",
    "hours",
    "hz",
    "kb",
    "kg",
    "khz",
    "kib",
    "km",
    "kw",
    "kwh",
    "l",
    "lb",
    "m",
    "mb",
    "mg",
    "mhz",
    "mib",
    "min",
    "minutes",
    "ml",
    "mm",
    "months",
    "ms",
    "pages",
    "percent",
    "pt",
    "px",
    "rpm",
    "s",
    "sec",
    "seconds",
    "tb",
    "tokens",
    "tonnes",
    "usd",
    "v",
    "w",
    "weeks",
    "words",
    "years",
];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Recognises what several words form together. Returns the kind and the number of words.
pub(super) fn of_phrase(words: &[&str]) -> Option<(PinKind, usize)> {
    match words {
        [day, month, year, ..] if is_day(day) && is_month(month) && is_year(year) => {
            Some((PinKind::Date, 3))
        }
        [month, day, year, ..] if is_day(day) && is_month(month) && is_year(year) => {
            Some((PinKind::Date, 3))
        }
        [number, unit, ..] if is_number(number) && is_unit(unit) => Some((PinKind::Quantity, 2)),
        [currency, number, ..] if is_currency_code(currency) && is_number(number) => {
            Some((PinKind::Quantity, 2))
        }
        _ => None,
    }
}

pub(super) fn of_word(word: &str) -> Option<PinKind> {
    // Nearly every word of prose ends here.
    if word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    if is_url(word) {
        Some(PinKind::Url)
    } else if is_email(word) {
        Some(PinKind::Email)
    } else if is_date(word) {
        Some(PinKind::Date)
    } else if is_quantity(word) {
        Some(PinKind::Quantity)
    } else if is_file(word) {
        Some(PinKind::File)
    } else if is_code(word) {
        Some(PinKind::Code)
    } else if is_identifier(word) {
        Some(PinKind::Identifier)
    } else {
        None
    }
}

fn is_url(word: &str) -> bool {
    if let Some((scheme, rest)) = word.split_once("://") {
        return !rest.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    }
    let host = word.split('/').next().unwrap_or(word);
    host.rsplit_once('.').is_some_and(|(name, ending)| {
        HOSTS.contains(&ending)
            && name.len() > 1
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
    })
}

fn is_email(word: &str) -> bool {
    word.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty()
            && host.contains('.')
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._+".contains(&byte))
    })
}

/// Recognises `2031-04-09`, also with a time behind a `T`; `9.4.2031`; `04/09/2031`; `14:30`.
fn is_date(word: &str) -> bool {
    let day = word.split_once('T').map_or(word, |(day, _)| day);
    ['-', '.', '/'].into_iter().any(|mark| {
        let mut fields = day.split(mark);
        matches!(
            (fields.next(), fields.next(), fields.next(), fields.next()),
            (Some(a), Some(b), Some(c), None)
                if (is_year(a) && is_day(b) && is_day(c)) || (is_day(a) && is_day(b) && is_year(c))
        )
    }) || word
        .split_once(':')
        .is_some_and(|(hour, minute)| is_day(hour) && minute.len() == 2 && is_day(minute))
}

/// Recognises `15%`, `250ms`, `€1,200.50`.
fn is_quantity(word: &str) -> bool {
    if let Some(amount) = word.strip_prefix(['$', '€', '£', '¥']) {
        let amount = amount.trim_end_matches(['k', 'm', 'K', 'M']);
        return is_number(amount);
    }
    let digits = word.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
    digits.is_some_and(|at| at > 0 && is_number(&word[..at]) && is_unit(&word[at..]))
        || word.strip_suffix(['€', '$', '£']).is_some_and(is_number)
}

fn is_file(word: &str) -> bool {
    let has_slash = word.contains('/');
    let is_path =
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/~+".contains(&byte));
    let ending = word.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
    let known = ending
        .is_some_and(|(_, ending)| EXTENSIONS.contains(&ending.to_ascii_lowercase().as_str()));
    let absolute = word.strip_prefix(['/', '~']).is_some_and(|rest| rest.contains('/'));
    is_path && (known || absolute || (has_slash && ending.is_some_and(|(_, e)| is_short_word(e))))
}

/// Recognises `snake_case`, `camelCase`, `path::item`, `call()`.
fn is_code(word: &str) -> bool {
    let name = word.strip_suffix("()").unwrap_or(word);
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':' || byte == b'.');
    let snake = name.trim_matches('_').contains('_') && !has_digit(name);
    let camel = name.as_bytes().windows(3).any(|bytes| {
        bytes[0].is_ascii_lowercase()
            && bytes[1].is_ascii_uppercase()
            && bytes[2].is_ascii_lowercase()
    });
    is_name
        && name.len() > 2
        && (name.len() < word.len() || name.contains("::") || snake || (camel && !has_digit(name)))
}

/// Recognises letters and digits in one word, a number sign, or a number too long to be a quantity.
fn is_identifier(word: &str) -> bool {
    let shaped =
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./#:+".contains(&byte));
    if !shaped || !IDENTIFIER_CHARS.contains(&word.len()) || !has_digit(word) {
        return false;
    }
    let has_letter = word.bytes().any(|byte| byte.is_ascii_alphabetic());
    if has_letter {
        return !is_counted_word(word);
    }
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    word.starts_with(['#', '+']) || digits >= 5 || word.matches('.').count() >= 2
}

/// Recognises `1st`, `90s`, `10-day`: a number with a word, not a name.
fn is_counted_word(word: &str) -> bool {
    let letters = word.trim_start_matches(|c: char| c.is_ascii_digit());
    letters.len() < word.len()
        && match letters.strip_prefix('-') {
            Some(tail) => tail.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
            None => ["st", "nd", "rd", "th", "s", "x"].contains(&letters),
        }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(|c: char| c.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_digit() || b".,".contains(&byte))
}

fn is_unit(word: &str) -> bool {
    word.len() <= 10 && UNITS.contains(&word.to_lowercase().as_str())
}

fn is_currency_code(word: &str) -> bool {
    ["EUR", "USD", "GBP", "CHF"].contains(&word)
}

fn is_day(field: &str) -> bool {
    matches!(field.len(), 1 | 2) && field.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_year(field: &str) -> bool {
    field.len() == 4 && field.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_month(word: &str) -> bool {
    word.len() >= 3
        && MONTHS
            .iter()
            .any(|month| month.eq_ignore_ascii_case(word) || month[..3].eq_ignore_ascii_case(word))
}

fn is_short_word(ending: &str) -> bool {
    (1..=5).contains(&ending.len()) && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}
