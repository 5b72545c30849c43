//! A snapshot of the metrics.

/// A metric family: samples with a common name.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// Name of the family for Prometheus, which ends with `_seconds` or `_bytes` if it has a unit.
    pub name: &'static str,
    /// Description of the family, as a sentence.
    pub help: &'static str,
    /// The samples.
    pub points: MetricPoints,
}

/// Samples of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricPoints {
    /// Sums since the server started, which never decrease.
    Counter(Vec<MetricPoint<MetricNumber>>),
    /// Current values.
    Gauge(Vec<MetricPoint<MetricNumber>>),
    /// Distributions of values since the server started.
    Histogram(Vec<MetricPoint<HistogramPoint>>),
}

/// A sample.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint<V> {
    /// Names and values of the labels.
    pub labels: Vec<(&'static str, String)>,
    /// The measured value.
    pub value: V,
}

/// A number, which retains its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricNumber {
    /// A count.
    Integer(u64),
    /// A floating-point number.
    Float(f64),
}

/// The distribution of values in a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramPoint {
    /// The sum of all values.
    pub sum: f64,
    /// Number of values.
    pub count: u64,
    /// Upper bound and number of values of each bucket, in ascending order. A bucket excludes the
    /// values of the previous one. The last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
}

impl From<u64> for MetricNumber {
    fn from(count: u64) -> Self {
        Self::Integer(count)
    }
}

impl From<usize> for MetricNumber {
    fn from(count: usize) -> Self {
        Self::Integer(count as u64)
    }
}

impl From<f64> for MetricNumber {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}
