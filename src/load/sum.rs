//! A sum of metric values that can be part of a machine's state: finite, totally ordered, hashable.

use core::cmp::Ordering;
use core::fmt;

/// A finite number, kept as its bits: `f64` is neither `Eq` nor `Hash`. Negative zero is zero.
///
/// ```
/// use xds_machine::load::Sum;
///
/// let sum = Sum::new(0.5).and_then(|half| Some(half.plus(Sum::new(1.0)?)));
/// assert_eq!(sum.map(Sum::value), Some(1.5));
/// assert_eq!(Sum::new(f64::NAN), None);
/// ```
#[derive(Clone, Copy, Default, Eq, Hash, PartialEq)]
pub struct Sum(u64);

impl Sum {
    /// Makes a sum of one value. Returns `None` if the value is not finite.
    pub fn new(value: f64) -> Option<Self> {
        // Adding zero makes zero of negative zero.
        value.is_finite().then(|| Self((value + 0.0).to_bits()))
    }

    /// Returns the number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// Adds another sum. Saturates at the greatest and the least finite number.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        // Neither is negative zero, so their sum is not.
        Self((self.value() + other.value()).clamp(f64::MIN, f64::MAX).to_bits())
    }
}

impl Ord for Sum {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value().total_cmp(&other.value())
    }
}

impl PartialOrd for Sum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.value(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(value: f64) -> Sum {
        Sum::new(value).expect("finite")
    }

    #[test]
    fn only_finite_numbers_are_sums() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Sum::new(value), None);
        }
        assert_eq!(sum(-0.0), sum(0.0));
        assert_eq!(sum(-1.5).plus(sum(1.5)), Sum::default());
        assert!(sum(-1.0) < sum(0.5) && sum(0.5) < sum(2.0));
        assert_eq!(alloc::format!("{:?}", sum(1.5)), "1.5");
    }

    #[test]
    fn sums_saturate() {
        assert_eq!(sum(f64::MAX).plus(sum(f64::MAX)), sum(f64::MAX));
        assert_eq!(sum(f64::MIN).plus(sum(f64::MIN)), sum(f64::MIN));
    }
}
