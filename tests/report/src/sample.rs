//! One figure, measured several times.

/// The values of all rounds.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

/// The unit of a figure, and whether smaller values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time.
    Microseconds,
    /// Time.
    Milliseconds,
    /// Frequency; more is better.
    PerSecond,
    /// Memory.
    Mebibytes,
}

impl Sample {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the middle value, or the mean of the two in the middle.
    pub fn median(&self) -> Option<f64> {
        let middle = self.0.len() / 2;
        let upper = self.0.get(middle)?;
        if self.0.len() % 2 == 1 {
            return Some(*upper);
        }
        Some(f64::midpoint(*self.0.get(middle.checked_sub(1)?)?, *upper))
    }

    /// Returns the smallest value.
    pub fn least(&self) -> Option<f64> {
        self.0.first().copied()
    }

    /// Returns the largest value.
    pub fn most(&self) -> Option<f64> {
        self.0.last().copied()
    }

    /// Returns the ratio of this median to the median of `other`.
    pub fn ratio(&self, other: &Self) -> Option<f64> {
        Some(self.median()? / other.median().filter(|median| *median > 0.0)?)
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        let mut sample = Self::default();
        values.into_iter().for_each(|value| sample.add(value));
        sample
    }
}

impl Unit {
    /// Returns the unit as it is written after a number.
    pub fn name(self) -> &'static str {
        match self {
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::PerSecond => "/s",
            Self::Mebibytes => "MiB",
        }
    }

    /// Returns whether smaller values are better.
    pub fn is_cost(self) -> bool {
        self != Self::PerSecond
    }

    /// Formats a value with its unit.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{}/s", number(value)),
            _ => format!("{} {}", number(value), self.name()),
        }
    }
}

/// Formats a number with three significant digits, and with commas if it is large.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        small if small >= 99.95 || small == 0.0 => 0,
        small if small >= 9.995 => 1,
        small if small >= 0.9995 => 2,
        _ => 3,
    };
    // Numbers above a thousand are rounded to three digits, too.
    let rounded = if value.abs() >= 1000.0 {
        let scale = 10_f64.powf(value.abs().log10().floor() - 2.0);
        (value / scale).round() * scale
    } else {
        value
    };
    let text = format!("{rounded:.digits$}");
    match text.split_once('.') {
        Some((whole, rest)) => format!("{}.{rest}", commas(whole)),
        None => commas(&text),
    }
}

/// Formats a whole number with commas.
pub(crate) fn count(value: f64) -> String {
    commas(&format!("{value:.0}"))
}

/// Inserts commas between thousands.
fn commas(digits: &str) -> String {
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        let sample = |values: &[f64]| values.iter().copied().collect::<Sample>();
        assert_eq!(sample(&[]).median(), None);
        assert_eq!(sample(&[3.0, 1.0, 2.0]).median(), Some(2.0));
        assert_eq!(sample(&[4.0, 1.0, 2.0, 3.0]).median(), Some(2.5));
        let some = sample(&[5.0, 1.0, 9.0]);
        assert_eq!(
            (some.least(), some.most(), some.len()),
            (Some(1.0), Some(9.0), 3)
        );
        assert_eq!(some.ratio(&sample(&[2.0])), Some(2.5));
        assert_eq!(
            (some.ratio(&sample(&[])), some.ratio(&sample(&[0.0]))),
            (None, None)
        );
    }

    #[test]
    fn numbers_have_three_digits_that_count() {
        let numbers = [
            0.0,
            0.0125,
            0.999,
            1.0,
            9.994,
            12.34,
            99.96,
            153.4,
            1234.0,
            23_456.0,
            1_234_567.0,
            -1234.0,
        ];
        let texts = numbers.map(number);
        let expected = [
            "0",
            "0.013",
            "0.999",
            "1.00",
            "9.99",
            "12.3",
            "100",
            "153",
            "1,230",
            "23,500",
            "1,230,000",
            "-1,230",
        ];
        assert_eq!(texts, expected);
        assert_eq!(
            (count(1.0), count(1_048_576.0)),
            ("1".to_owned(), "1,048,576".to_owned())
        );
        assert_eq!(Unit::PerSecond.words(23_456.0), "23,500/s");
        assert_eq!(Unit::Microseconds.words(153.4), "153 µs");
    }
}
