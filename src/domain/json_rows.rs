//! Rows as JSON, for statements that open a parameter with `jsonb_to_record` or `jsonb_to_recordset`.
//!
//! A field has the name of its column in the statement. Postgres ignores unknown names and reads missing ones as NULL, so that
//! the tests of each statement compare the two lists (`columns::assert_are_fields_of`).

use chrono::{DateTime, Utc};
use serde::Serializer;

/// Serializes a `bytea` column. For `#[serde(serialize_with = "json_rows::bytea")]`.
pub fn bytea<S: Serializer>(bytes: impl AsRef<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("\\x{}", hex::encode(bytes)))
}

/// Serializes a `timestamptz` column with the microseconds of a binary parameter: Postgres would round further digits. The year has
/// no sign, which Postgres cannot read.
pub fn timestamptz<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = at.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    serializer.serialize_str(text.trim_start_matches('+'))
}

/// Serializes a value as [`timestamptz`], or NULL.
pub fn optional_timestamptz<S: Serializer>(
    at: &Option<DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => timestamptz(at, serializer),
        None => serializer.serialize_none(),
    }
}

/// For the tests of statements.
#[cfg(test)]
pub(super) mod columns {
    use std::collections::BTreeSet;

    use serde::Serialize;

    /// `parameter` is the place of the statement that opens the row, for instance `jsonb_to_record($1)`.
    pub(in crate::domain) fn assert_are_fields_of(
        row: &impl Serialize,
        sql: &str,
        parameter: &str,
    ) {
        let serde_json::Value::Object(fields) = serde_json::to_value(row).unwrap() else {
            panic!("the row of {parameter} is not an object");
        };
        let fields: BTreeSet<String> = fields.keys().cloned().collect();
        assert_eq!(columns(sql, parameter), fields, "{parameter}: columns and fields differ");
    }

    fn columns(sql: &str, parameter: &str) -> BTreeSet<String> {
        let (_, after) = sql.split_once(parameter).expect("the statement opens the row");
        let (_, list) = after.split_once('(').unwrap();
        let code = list.lines().filter_map(|line| line.split("--").next());
        let code: String = code.flat_map(|line| [line, " "]).collect();
        let (list, _) = code.split_once(')').unwrap();
        let names = list.split(',').filter_map(|column| column.split_whitespace().next());
        names.map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use serde::Serialize;

    use super::*;

    #[derive(Serialize)]
    struct Row {
        #[serde(serialize_with = "bytea")]
        digest: [u8; 3],
        #[serde(serialize_with = "timestamptz")]
        at: DateTime<Utc>,
        #[serde(serialize_with = "optional_timestamptz")]
        until: Option<DateTime<Utc>>,
    }

    #[test]
    fn timestamps_are_cut_to_microseconds_and_years_are_unsigned() {
        let at: DateTime<Utc> = "2026-11-20T12:00:00.999999999Z".parse().unwrap();
        let far = at + TimeDelta::days(36_500_000);
        let row = Row { digest: [0, 10, 255], at, until: Some(far) };
        let expected = r#"{"digest":"\\x000aff","at":"2026-11-20T12:00:00.999999Z","until":"101960-06-29T12:00:00.999999Z"}"#;
        assert_eq!(serde_json::to_string(&row).unwrap(), expected);
        let row = serde_json::to_value(Row { until: None, ..row }).unwrap();
        assert!(row["until"].is_null());
    }
}
