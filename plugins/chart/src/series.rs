//! The data of a chart.

use serde::Serialize;
use toolbay_plugin::{JsonSchema, Result, invalid, schemars};

/// Maximum number of points that can be distinguished.
const MAX_POINTS: usize = 1000;

/// Larger values would overflow the arithmetic of the axis.
const MAX_VALUE: f64 = 1e100;

/// Labelled numbers: at least one, all finite.
pub(crate) struct Series {
    points: Vec<Point>,
}

/// One number and what it is called.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct Point {
    pub(crate) label: String,
    pub(crate) value: f64,
}

/// What the picture shows, in numbers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Summary {
    /// How many values there are.
    #[schemars(range(max = 4_294_967_295_u64))]
    count: usize,
    /// The smallest value; the first one if several are equal.
    min: Option<Point>,
    /// The largest value; the first one if several are equal.
    max: Option<Point>,
    /// The arithmetic mean.
    mean: f64,
}

impl Series {
    pub(crate) fn new(labels: Vec<String>, values: Vec<f64>) -> Result<Self> {
        if values.is_empty() || values.len() > MAX_POINTS {
            invalid!(
                "`values` has 1 to {MAX_POINTS} numbers, not {}",
                values.len()
            );
        }
        if labels.len() != values.len() {
            invalid!(
                "{} `values` need as many `labels`, not {}",
                values.len(),
                labels.len()
            );
        }
        if let Some(value) = values.iter().find(|value| value.abs() > MAX_VALUE) {
            invalid!("`values` are from -{MAX_VALUE:e} to {MAX_VALUE:e}, not {value:e}");
        }
        let points = labels
            .into_iter()
            .zip(values)
            .map(|(label, value)| Point { label, value })
            .collect();
        Ok(Self { points })
    }

    /// Creates a series with the labels `1`, `2` and so on.
    pub(crate) fn numbered(values: Vec<f64>) -> Result<Self> {
        let labels = (1..=values.len())
            .map(|number| number.to_string())
            .collect();
        Self::new(labels, values)
    }

    pub(crate) fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns the smallest and the largest value.
    pub(crate) fn range(&self) -> (f64, f64) {
        self.points
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), point| {
                (low.min(point.value), high.max(point.value))
            })
    }

    pub(crate) fn summary(&self) -> Summary {
        let (low, high) = self.range();
        let find = |value: f64| {
            let equal = |point: &&Point| point.value.total_cmp(&value).is_eq();
            self.points.iter().find(equal).cloned()
        };
        let sum: f64 = self.points.iter().map(|point| point.value).sum();
        Summary {
            count: self.points.len(),
            min: find(low),
            max: find(high),
            mean: sum / crate::canvas::float(self.points.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        assert!(Series::numbered(Vec::new()).is_err());
        assert!(Series::numbered(vec![0.0; MAX_POINTS + 1]).is_err());
        assert!(Series::numbered(vec![f64::MAX]).is_err());
        assert!(Series::new(vec!["a".to_owned()], vec![1.0, 2.0]).is_err());
    }

    #[test]
    fn a_summary_names_the_extremes() {
        let summary = Series::numbered(vec![3.0, 1.0, 8.0, 8.0])
            .unwrap()
            .summary();
        assert_eq!(summary.count, 4);
        assert_eq!(summary.min.unwrap().label, "2");
        assert_eq!(summary.max.unwrap().label, "3");
        assert_eq!(summary.mean.to_string(), "5");
    }
}
