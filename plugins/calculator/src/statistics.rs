//! Sums and statistics of numbers.

use serde::Serialize;
use toolbay_plugin::{JsonSchema, schemars};

/// Statistics of the numbers.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Statistics {
    /// How many there are.
    #[schemars(range(max = 4_294_967_295_u64))]
    pub(crate) count: usize,
    /// The sum.
    pub(crate) sum: f64,
    /// The arithmetic mean.
    pub(crate) mean: f64,
    /// The middle one, or the mean of the two in the middle.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) min: f64,
    /// The largest.
    pub(crate) max: f64,
    /// The standard deviation of the whole population.
    pub(crate) standard_deviation: f64,
}

impl Statistics {
    pub(crate) fn of(mut numbers: Vec<f64>) -> Option<Self> {
        numbers.sort_by(f64::total_cmp);
        let min = *numbers.first()?;
        let max = *numbers.last()?;
        let count = numbers.len();
        let sum = sum(&numbers);
        let mean = sum / float(count);
        let squares: Vec<f64> = numbers.iter().map(|x| (x - mean).powi(2)).collect();
        Some(Self {
            count,
            sum,
            mean,
            median: median(&numbers)?,
            min,
            max,
            standard_deviation: (self::sum(&squares) / float(count)).sqrt(),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count is far below 2^53")]
fn float(count: usize) -> f64 {
    count as f64
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(middle.checked_sub(1)?)?;
    Some(f64::midpoint(lower, upper))
}

/// Adds numbers with Neumaier's compensation for rounding errors: `[1e100, 1, -1e100]` is 1.
pub(crate) fn sum(numbers: &[f64]) -> f64 {
    let mut sum = 0.0_f64;
    let mut lost = 0.0_f64;
    for &number in numbers {
        let next = sum + number;
        lost += if sum.abs() >= number.abs() {
            (sum - next) + number
        } else {
            (number - next) + sum
        };
        sum = next;
    }
    // After an overflow the correction is NaN, and infinity is more informative.
    if sum.is_finite() { sum + lost } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes() {
        let statistics = Statistics::of(vec![4.0, 2.0, 9.0, 5.0]).unwrap();
        assert_eq!(
            statistics,
            Statistics {
                count: 4,
                sum: 20.0,
                mean: 5.0,
                median: 4.5,
                min: 2.0,
                max: 9.0,
                standard_deviation: 6.5_f64.sqrt(),
            }
        );
    }

    #[test]
    fn the_median_of_an_odd_number_is_one_of_them() {
        assert_eq!(median(&[1.0, 2.0, 30.0]), Some(2.0));
        assert_eq!(Statistics::of(Vec::new()), None);
    }

    #[test]
    fn small_numbers_survive_beside_large_ones() {
        assert_eq!(sum(&[1e100, 1.0, -1e100]).to_string(), "1");
        assert!(sum(&[f64::MAX, f64::MAX]).is_infinite());
    }
}
