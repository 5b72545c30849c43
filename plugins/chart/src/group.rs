//! Grouping of values.

use serde::{Deserialize, Serialize};
use toolbay_plugin::{JsonSchema, schemars};

use crate::canvas::float;
use crate::series::{Point, Series};

/// What stands for a group.
#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Measure {
    /// The arithmetic mean.
    #[default]
    Mean,
    /// The sum.
    Sum,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

/// Groups, in the order of their values.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Grouped {
    /// The names of the groups: of the first and the last member.
    labels: Vec<String>,
    /// The value of each group.
    values: Vec<f64>,
}

impl Measure {
    fn of(self, members: &[Point]) -> f64 {
        let values = members.iter().map(|point| point.value);
        match self {
            Self::Mean => values.sum::<f64>() / float(members.len()),
            Self::Sum => values.sum(),
            Self::Min => values.fold(f64::INFINITY, f64::min),
            Self::Max => values.fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// Joins neighbours into at most `most` groups of equal size. The last group may be smaller.
pub(crate) fn group(series: &Series, most: usize, measure: Measure) -> Grouped {
    let points = series.points();
    let size = points.len().div_ceil(most.max(1)).max(1);
    let groups = points.chunks(size);
    Grouped {
        labels: groups.clone().map(label).collect(),
        values: groups.map(|group| measure.of(group)).collect(),
    }
}

fn label(members: &[Point]) -> String {
    match members {
        [] => String::new(),
        [one] => one.label.clone(),
        [first, .., last] => format!("{} – {}", first.label, last.label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(most: usize, measure: Measure) -> Vec<f64> {
        let series = Series::numbered(vec![4.0, 2.0, 6.0, -1.0, 5.0]).unwrap();
        group(&series, most, measure).values
    }

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(grouped(2, Measure::Sum), [12.0, 4.0]);
        assert_eq!(grouped(2, Measure::Mean), [4.0, 2.0]);
        assert_eq!(grouped(3, Measure::Min), [2.0, -1.0, 5.0]);
        assert_eq!(grouped(1, Measure::Max), [6.0]);
        assert_eq!(
            grouped(1000, Measure::Max),
            [4.0, 2.0, 6.0, -1.0, 5.0],
            "as many as there are"
        );
    }

    #[test]
    fn a_group_is_named_after_its_ends() {
        let series = Series::numbered(vec![0.0; 5]).unwrap();
        assert_eq!(group(&series, 2, Measure::Mean).labels, ["1 – 3", "4 – 5"]);
        assert_eq!(
            group(&series, 3, Measure::Mean).labels,
            ["1 – 2", "3 – 4", "5"]
        );
    }
}
