//! Full-text search.

use uuid::Uuid;

/// One try of a full-text search.
#[derive(Debug, Clone, Copy)]
pub struct WordQuery<'a> {
    pub words: &'a str,
    /// True if every word must match. False: any of them, for questions in whole sentences, whose words no row has all.
    pub needs_all: bool,
    /// True if the question has no operators.
    pub is_plain: bool,
    pub limit: i64,
}

/// A row that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedRow {
    pub id: Uuid,
    /// Score; larger is better. Comparable only within one answer.
    pub rank: f64,
    /// The matching part of its text, if the noun shows one. `None`: found by its meaning alone.
    pub excerpt: Option<String>,
}

/// Searches the words of a table whose rows `i` have a column `search`; the best first.
///
/// `$column` is the scope, `$1` its value, and `$key` the same as text, which the index has with a colon in front. It contains no
/// character that would end the quotes. `$may_be_found` is a condition over `i`, with `$6` as the current time and `$args` from `$8` on.
/// `$excerpt` is an expression over the found row `t` and the query `a.words`.
///
/// Ranking is the expensive part, so only few rows are ranked: those with the rare words of the question. The statistics of the column
/// say which words are common; before the first `analyze`, none is. A question of common words alone is answered from the newest rows. If
/// very many rows still match, for example a phrase, only some of them are ranked.
macro_rules! by_words {
    (
        $conn:expr, $query:expr, in $language:expr, at $now:expr,
        from $table:literal as $name:literal where $column:literal = ($key:literal, $scope:expr),
        $may_be_found:literal, $excerpt:literal $(, $args:expr)* $(,)?
    ) => {{
        let query: crate::domain::search::WordQuery<'_> = $query;
        sqlx::query_as!(
            crate::domain::search::RankedRow,
            r#"with lexemes as materialized (
                 select false as is_stem, word from unnest(tsvector_to_array(to_tsvector('simple', $2))) as word where word !~ '[\\'']'
                 union all
                 select true, word from unnest(tsvector_to_array(to_tsvector($3::text::regconfig, $2))) as word where word !~ '[\\'']'
               ), common as materialized (
                 select c.word from pg_stats as s, unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) as c (word, share)
                  where s.schemaname = 'dalsegno' and s.tablename = '"# + $name + r#"' and s.attname = 'search' and c.share > 0.02
                    and c.word in (select word from lexemes)
               ), rare as materialized (
                 -- The longest words are usually the rarest.
                 select r.is_stem, string_agg(format('%L', r.word), case when $4 then ' & ' else ' | ' end) as words
                   from (select is_stem, word, row_number() over (partition by is_stem order by length(word) desc, word) as place
                           from lexemes where word not in (select word from common)) as r
                  where r.place <= 8 group by r.is_stem
               ), asked as materialized (
                 select format('%L', ':' || "# + $key + r#")::tsquery as scope, w.words,
                        case when $5 then coalesce((select string_agg('(' || words || ')', ' | ') from rare), '')::tsquery
                             else w.words end as rare
                   from (select case when $4 then websearch_to_tsquery('simple', $2) || websearch_to_tsquery($3::text::regconfig, $2)
                                     -- plainto_tsquery joins words by `&` and has no other operator.
                                     else replace((plainto_tsquery('simple', $2)
                                                   || plainto_tsquery($3::text::regconfig, $2))::text, ' & ', ' | ')::tsquery
                                end as words) as w
               ), near as materialized (
                 select i.id, i.search from asked as a, lateral (
                   select i.id, i.search from "# + $table + " as i
                    where numnode(a.rare) > 0 and i.search @@ (a.rare && a.scope) and i." + $column + " = $1 and " + $may_be_found + "
                    limit 5000) as i
                 union all
                 select i.id, i.search from asked as a, lateral (
                   select i.* from " + $table + " as i where i." + $column + " = $1 order by i.id desc limit 2000) as i
                  where numnode(a.rare) = 0 and " + $may_be_found + r#"
               ), found as materialized (
                 select n.id, ts_rank(n.search, a.words, 1) as rank from asked as a, near as n
                  where numnode(a.words) > 0 and n.search @@ a.words
                  order by rank desc, n.id desc limit $7
               )
               select t.id, f.rank::double precision as "rank!", "# + $excerpt + r#" as "excerpt?"
                 from asked as a, found as f join "# + $table + " as t on t.id = f.id
                order by f.rank desc, f.id desc",
            $scope,
            query.words,
            $language,
            query.needs_all,
            query.is_plain,
            $now,
            query.limit,
            $($args),*
        )
        .fetch_all($conn)
        .await
        .map_err(crate::domain::StatementError::to("search the full text"))
    }};
}
pub(in crate::domain) use by_words;
