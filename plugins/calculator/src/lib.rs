//! Sums.
