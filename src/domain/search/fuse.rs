//! Merging the results of full-text search and of search by meaning.

use uuid::Uuid;

use super::RankedRow;

/// Smoothing of reciprocal rank fusion: how fast lower places lose weight. A row among the first sixty of both lists outranks the first
/// row of one list.
const SMOOTHING: f64 = 60.0;

/// Merges both lists by the places of each row in them (reciprocal rank fusion), because their own scores are not comparable. The best
/// first; of equal rows the one of the full-text search first.
pub(super) fn fuse(mut fused: Vec<RankedRow>, by_meaning: &[Uuid], limit: usize) -> Vec<RankedRow> {
    if by_meaning.is_empty() {
        return fused;
    }
    let rank_at = |place: usize| 1.0 / (SMOOTHING + 1.0 + place as f64);
    for (place, found) in fused.iter_mut().enumerate() {
        found.rank = rank_at(place);
    }
    for (place, id) in by_meaning.iter().enumerate() {
        let rank = rank_at(place);
        match fused.iter_mut().find(|known| known.id == *id) {
            Some(known) => known.rank += rank,
            None => fused.push(RankedRow { id: *id, rank, excerpt: None }),
        }
    }
    // The sort is stable, so results of the full-text search come first among equals.
    fused.sort_by(|a, b| b.rank.total_cmp(&a.rank));
    fused.truncate(limit);
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[u128]) -> Vec<Uuid> {
        numbers.iter().copied().map(Uuid::from_u128).collect()
    }

    fn order(by_words: &[u128], by_meaning: &[u128], limit: usize) -> Vec<u128> {
        let found = |id| RankedRow { id, rank: 1.0, excerpt: None };
        let by_words = ids(by_words).into_iter().map(found).collect();
        let fused = fuse(by_words, &ids(by_meaning), limit);
        fused.iter().map(|found| found.id.as_u128()).collect()
    }

    #[test]
    fn results_of_both_searches_come_first_and_full_text_breaks_ties() {
        assert_eq!(order(&[1, 2, 3], &[4, 3], 10), [3, 1, 4, 2]);
        assert_eq!(order(&[1, 2], &[2, 1], 10), [1, 2]);
        assert_eq!(order(&[1, 2, 3], &[4], 2), [1, 4]);
        assert_eq!(order(&[], &[5, 6], 10), [5, 6]);
        assert_eq!(order(&[7], &[], 10), [7]);
    }
}
