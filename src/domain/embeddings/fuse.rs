//! One list of two.

use uuid::Uuid;

/// How fast a place further down counts less. What both lists have counts more than the first of one, as long as it is among the first
/// sixty of both.
const SMOOTHING: f64 = 60.0;

/// Puts together what was found by words and what was found by meaning, by the places that each has in both (reciprocal rank fusion):
/// their own measures have nothing to do with each other. The best first; of two that are as good, the one found by its words.
pub fn fuse(by_words: &[Uuid], by_meaning: &[Uuid], limit: usize) -> Vec<(Uuid, f64)> {
    let mut fused: Vec<(Uuid, f64)> = Vec::with_capacity(by_words.len() + by_meaning.len());
    for list in [by_words, by_meaning] {
        for (place, id) in list.iter().enumerate() {
            let rank = 1.0 / (SMOOTHING + 1.0 + place as f64);
            match fused.iter_mut().find(|(known, _)| known == id) {
                Some((_, sum)) => *sum += rank,
                None => fused.push((*id, rank)),
            }
        }
    }
    // Stable: those of words stand first.
    fused.sort_by(|a, b| b.1.total_cmp(&a.1));
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
        let fused = fuse(&ids(by_words), &ids(by_meaning), limit);
        fused.iter().map(|(id, _)| id.as_u128()).collect()
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
