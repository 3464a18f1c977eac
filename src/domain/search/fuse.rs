//! One list of two.

use uuid::Uuid;

use super::Ranked;

/// How fast a place further down counts less. What both lists have counts more than the first of one, as long as it is among the first
/// sixty of both.
const SMOOTHING: f64 = 60.0;

/// Puts together what was found by words and what was found by meaning, by the places that each has in both (reciprocal rank fusion):
/// their own measures have nothing to do with each other. The best first; of two that are as good, the one found by its words.
pub(super) fn fuse(mut fused: Vec<Ranked>, by_meaning: &[Uuid], limit: usize) -> Vec<Ranked> {
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
            None => fused.push(Ranked { id: *id, rank, excerpt: None }),
        }
    }
    // Stable: those of words stand first.
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
        let found = |id| Ranked { id, rank: 1.0, excerpt: None };
        let by_words = ids(by_words).into_iter().map(found).collect();
        let fused = fuse(by_words, &ids(by_meaning), limit);
        fused.iter().map(|found| found.id.as_u128()).collect()
    }

    #[test]
    fn what_both_have_comes_first_and_words_decide_between_equals() {
        assert_eq!(order(&[1, 2, 3], &[4, 3], 10), [3, 1, 4, 2]);
        assert_eq!(order(&[1, 2], &[2, 1], 10), [1, 2]);
        assert_eq!(order(&[1, 2, 3], &[4], 2), [1, 4]);
        assert_eq!(order(&[], &[5, 6], 10), [5, 6]);
        assert_eq!(order(&[7], &[], 10), [7]);
    }
}
