//! Delta debugging: leaves out the steps that a violation does not need.

/// Returns a shorter list that still `fails`, as short as can be found before `fails` gives up (`None`).
pub fn shrink<T: Clone>(mut list: Vec<T>, mut fails: impl FnMut(&[T]) -> Option<bool>) -> Vec<T> {
    let mut size = list.len().div_ceil(2);
    while size > 0 {
        let (mut at, mut shorter) = (0, false);
        while at < list.len() {
            let end = (at + size).min(list.len());
            let rest: Vec<T> = list[..at].iter().chain(&list[end..]).cloned().collect();
            match fails(&rest) {
                None => return list,
                Some(true) => (list, shorter) = (rest, true),
                Some(false) => at = end,
            }
        }
        size = match size {
            1 if shorter => 1, // an item that was needed before may be needless now
            1 => 0,
            _ => size.div_ceil(2),
        };
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_keeps_the_needed_items_in_order() {
        let mut plays = 0;
        let needed = |list: &[u32]| {
            plays += 1;
            Some(list.contains(&3) && list.contains(&40) && list.contains(&41))
        };
        assert_eq!(shrink((0..64).collect(), needed), [3, 40, 41]);
        assert!(plays < 60, "{plays}");
    }

    #[test]
    fn an_item_is_tried_again_after_another_item_was_removed() {
        // 1 can be left out only once 2 is left out.
        let fails = |list: &[u32]| Some(list.contains(&0) && (list.contains(&1) || !list.contains(&2)));
        assert_eq!(shrink(vec![0, 1, 2], fails), [0]);
    }

    #[test]
    fn a_time_out_returns_the_shortest_list_found_so_far() {
        let mut left = 3;
        let fails = |list: &[u32]| {
            left -= 1;
            (left > 0).then(|| list.contains(&7))
        };
        let list = shrink((0..16).collect(), fails);
        assert!(list.contains(&7) && list.len() < 16, "{list:?}");
    }
}
