//! The scale of the values: its start, its end and its ticks.

use crate::canvas::index;

/// Approximate number of steps of an axis. More steps crowd a small picture.
const STEPS: f64 = 5.0;

/// Relative difference below which values are drawn as equal, because ticks between them would have
/// too many digits to read.
const FLAT: f64 = 1e-9;

/// A scale that starts and ends at round numbers.
pub(crate) struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// Creates a scale that contains both values.
    pub(crate) fn over(low: f64, high: f64) -> Self {
        let size = low.abs().max(high.abs());
        let (low, high) = if high - low > size * FLAT {
            (low, high)
        } else {
            // A single value is centred.
            let half = if size > 0.0 { size / 2.0 } else { 1.0 };
            (low - half, high + half)
        };
        let step = round_step((high - low) / STEPS);
        Self {
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            step,
        }
    }

    /// Returns the position of a value on the axis, from 0 at its start to 1 at its end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Returns the value of the base line: 0 if the axis contains it.
    pub(crate) fn base(&self) -> f64 {
        if (self.low..=self.high).contains(&0.0) {
            0.0
        } else {
            self.low
        }
    }

    /// Returns the values of the ticks and their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let (unit, suffix) = unit(self.low.abs().max(self.high.abs()));
        let places = places(self.step / unit);
        let first = (self.low / self.step).round();
        let last = (self.high / self.step).round();
        std::iter::successors(Some(first), |number| Some(number + 1.0))
            .take_while(|number| *number <= last)
            .map(|number| {
                let value = number * self.step;
                let label = if value == 0.0 {
                    "0".to_owned()
                } else {
                    format!("{:.places$}{suffix}", value / unit)
                };
                (value, label)
            })
            .collect()
    }
}

/// Returns the smallest number that is 1, 2 or 5 times a power of ten and not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        // A rounding error must not turn 2.0000000000000004 into 5.
        .find(|round| *round >= step * (1.0 - FLAT))
        .unwrap_or(10.0 * power)
}

/// Returns the unit, with its suffix, in which numbers up to `size` have few digits.
fn unit(size: f64) -> (f64, String) {
    const PREFIXES: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    if (1e-3..1e4).contains(&size) {
        return (1.0, String::new());
    }
    let prefix = PREFIXES
        .into_iter()
        .find(|(unit, _)| (*unit..1e16).contains(&size));
    if let Some((unit, suffix)) = prefix {
        return (unit, suffix.to_owned());
    }
    let exponent = size.log10().floor();
    (10_f64.powf(exponent), format!("e{exponent}"))
}

/// Returns how many decimal places distinguish multiples of `step`.
fn places(step: f64) -> usize {
    index(-(step.log10() + FLAT).floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(low: f64, high: f64, expected: &[&str]) {
        let ticks = Axis::over(low, high).ticks();
        let labels: Vec<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, expected);
    }

    #[test]
    fn ticks_are_round() {
        check(0.0, 10.0, &["0", "2", "4", "6", "8", "10"]);
        check(-3.0, 7.5, &["-5", "0", "5", "10"]);
        check(0.0, 0.9, &["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        check(101.0, 103.0, &["101.0", "101.5", "102.0", "102.5", "103.0"]);
    }

    #[test]
    fn large_and_small_numbers_stay_short() {
        check(0.0, 45_000.0, &["0", "10k", "20k", "30k", "40k", "50k"]);
        check(0.0, 3e6, &["0", "1M", "2M", "3M"]);
        check(0.0, 3e20, &["0", "1e20", "2e20", "3e20"]);
        check(0.0, 4e-7, &["0", "1e-7", "2e-7", "3e-7", "4e-7"]);
    }

    #[test]
    fn one_value_is_in_the_middle() {
        let axis = Axis::over(10.0, 10.0);
        assert!((axis.position(10.0) - 0.5).abs() < 0.1);
        check(0.0, 0.0, &["-1.0", "-0.5", "0", "0.5", "1.0"]);
        check(-4.0, -4.0, &["-6", "-5", "-4", "-3", "-2"]);
    }

    #[test]
    fn the_base_is_on_the_axis() {
        assert!(Axis::over(-5.0, 5.0).base().abs() < FLAT);
        assert!(Axis::over(-9.0, -5.0).base() < -8.0);
    }

    #[test]
    fn extremes_have_few_ticks() {
        for (low, high) in [(-1e100, 1e100), (1e15, 1e15 + 1.0), (0.0, 1e-300)] {
            let ticks = Axis::over(low, high).ticks();
            assert!((3..=9).contains(&ticks.len()), "{ticks:?}");
        }
    }
}
