//! Measures of the sources, and their limits.

/// One measure of the sources.
pub(super) struct Measure {
    pub(super) name: &'static str,
    pub(super) tenths: usize,
    /// The largest value that the project allows, in tenths.
    pub(super) limit_tenths: usize,
    /// The places that count, one per line.
    pub(super) places: Vec<String>,
}

impl Measure {
    /// A number of things, of which there may be `limit`.
    pub(super) fn of_count(
        name: &'static str,
        count: usize,
        limit: usize,
        places: Vec<String>,
    ) -> Self {
        Self {
            name,
            tenths: count * 10,
            limit_tenths: limit * 10,
            places,
        }
    }

    /// The share of the places among `all`, in parts of `scale`, which may be `limit_tenths`
    /// tenths.
    pub(super) fn of_share(
        name: &'static str,
        all: usize,
        scale: usize,
        limit_tenths: usize,
        places: Vec<String>,
    ) -> Self {
        Self {
            name,
            tenths: places.len() * scale * 10 / all.max(1),
            limit_tenths,
            places,
        }
    }

    pub(super) fn is_met(&self) -> bool {
        self.tenths <= self.limit_tenths
    }
}
