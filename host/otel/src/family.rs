//! What is measured, at one moment.

/// Samples with one name.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// Its name, which ends with the unit if it has one: `_seconds` or `_bytes`.
    pub name: &'static str,
    /// What it says, as a sentence.
    pub help: &'static str,
    /// The samples.
    pub points: MetricPoints,
}

/// Samples of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricPoints {
    /// Sums since the server started, which only increase.
    Counter(Vec<MetricPoint<MetricNumber>>),
    /// What is now.
    Gauge(Vec<MetricPoint<MetricNumber>>),
    /// How often values were how large since the server started.
    Histogram(Vec<MetricPoint<HistogramPoint>>),
}

/// A sample.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint<V> {
    /// What it is of: names and values.
    pub labels: Vec<(&'static str, String)>,
    /// What was measured.
    pub value: V,
}

/// A number, written as what it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricNumber {
    /// A count.
    Whole(u64),
    /// Any number.
    Real(f64),
}

/// How often values were how large.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramPoint {
    /// The sum of all values.
    pub sum: f64,
    /// How many there are.
    pub count: u64,
    /// How many are within each bound and not within the one before, in ascending order; the last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
}

impl From<u64> for MetricNumber {
    fn from(count: u64) -> Self {
        Self::Whole(count)
    }
}

impl From<usize> for MetricNumber {
    fn from(count: usize) -> Self {
        Self::Whole(count as u64)
    }
}

impl From<f64> for MetricNumber {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}
