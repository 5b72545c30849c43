//! Scales of axes.

/// An axis from one value to another, over an interval of the drawing.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    is_logarithmic: bool,
}

impl Axis {
    /// Creates an axis for these values. A logarithmic one extends to the next power of ten, or two
    /// or five times a power of ten. A linear one starts at zero.
    pub(crate) fn of(
        values: impl Iterator<Item = f64>,
        is_logarithmic: bool,
        start: f64,
        end: f64,
    ) -> Self {
        let mut from = f64::INFINITY;
        let mut to = f64::NEG_INFINITY;
        for value in values.filter(|value| value.is_finite() && (*value > 0.0 || !is_logarithmic)) {
            (from, to) = (from.min(value), to.max(value));
        }
        if !from.is_finite() {
            (from, to) = (1.0, 10.0);
        }
        if !is_logarithmic {
            return Self {
                from: 0.0,
                to: round_up(to.max(f64::MIN_POSITIVE)),
                start,
                end,
                is_logarithmic,
            };
        }
        let from = round_down(from);
        let to = round_up(to);
        Self {
            from,
            to: if to > from { to } else { from * 10.0 },
            start,
            end,
            is_logarithmic,
        }
    }

    /// Limits the axis to these values.
    pub(crate) fn tight(self, least: f64, most: f64) -> Self {
        if !(least.is_finite() && most.is_finite()) {
            return self;
        }
        let most = if most > least { most } else { least * 10.0 };
        Self {
            from: least,
            to: most,
            ..self
        }
    }

    /// Returns the position of a value in the drawing.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Returns the values of the grid lines.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if !self.is_logarithmic {
            return (0_u8..=4)
                .map(|quarter| self.from + (self.to - self.from) * f64::from(quarter) / 4.0)
                .collect();
        }
        let mut ticks = Vec::new();
        let mut power = 10_f64.powf(self.from.log10().floor());
        // In a narrow range, two and five times each power of ten have a line, too.
        let wide = self.to / self.from > 1000.0;
        while power <= self.to * 1.001 {
            let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let within = steps.iter().map(|step| step * power);
            ticks.extend(
                within.filter(|tick| *tick >= self.from * 0.999 && *tick <= self.to * 1.001),
            );
            power *= 10.0;
        }
        ticks
    }
}

/// Returns the next larger number that is one, two or five times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step >= value * 0.999)
        .unwrap_or(value)
}

/// Returns the next smaller number that is one, two or five times a power of ten.
fn round_down(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step <= value * 1.001)
        .unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-6 * right.abs().max(1.0)
    }

    #[test]
    fn values_lie_between_the_ends() {
        let axis = Axis::of([1.0, 900.0].into_iter(), true, 0.0, 300.0);
        assert!(
            about(axis.at(1.0), 0.0)
                && about(axis.at(10.0), 100.0)
                && about(axis.at(1000.0), 300.0)
        );
        assert!(about(axis.at(1e9), 300.0), "outside");
        let plain = Axis::of([3.0, 70.0].into_iter(), false, 100.0, 0.0);
        assert!(
            about(plain.at(0.0), 100.0)
                && about(plain.at(50.0), 50.0)
                && about(plain.at(100.0), 0.0)
        );
        assert_eq!(plain.ticks(), [0.0, 25.0, 50.0, 75.0, 100.0]);
    }

    #[test]
    fn lines_are_at_round_numbers() {
        let ticks = |from, to| Axis::of([from, to].into_iter(), true, 0.0, 1.0).ticks();
        assert!(
            ticks(3.0, 70.0)
                .iter()
                .zip([2.0, 5.0, 10.0, 20.0, 50.0, 100.0])
                .all(|(a, b)| about(*a, b))
        );
        assert_eq!(ticks(1.0, 20_000.0).len(), 5);
        let none =
            Axis::of(std::iter::empty(), true, 0.0, 1.0).tight(f64::INFINITY, f64::NEG_INFINITY);
        assert!(!none.ticks().is_empty(), "nothing was measured");
        assert!(
            !Axis::of(std::iter::empty(), true, 0.0, 1.0)
                .ticks()
                .is_empty()
        );
        assert!(
            !Axis::of([4.0].into_iter(), true, 0.0, 1.0)
                .ticks()
                .is_empty()
        );
    }
}
