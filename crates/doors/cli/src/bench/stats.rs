//! Samples and what is told of them.

use std::time::Duration;

/// Times of one side of a comparison, in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<f64>);

impl Samples {
    /// Adds a time.
    pub(super) fn push(&mut self, time: Duration) {
        self.0.push(milliseconds(time));
    }

    /// Adds a number of milliseconds.
    pub(super) fn push_ms(&mut self, ms: f64) {
        self.0.push(ms);
    }

    /// Returns the median; 0 without samples.
    pub(super) fn median(&self) -> f64 {
        self.quantile(1, 2)
    }

    /// Returns the time that 95 of 100 samples stay under.
    pub(super) fn p95(&self) -> f64 {
        self.quantile(19, 20)
    }

    fn quantile(&self, part: usize, of: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let at = sorted.len() * part / of;
        sorted
            .get(at.min(sorted.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0.0)
    }
}

/// Returns a duration in milliseconds.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn median_and_p95_of_few_and_many() {
        assert!(Samples::default().median().abs() < f64::EPSILON);
        let hundred = Samples((1..=100).rev().map(f64::from).collect());
        assert!((hundred.median() - 51.0).abs() < f64::EPSILON);
        assert!((hundred.p95() - 96.0).abs() < f64::EPSILON);
        let one = Samples(vec![7.0]);
        assert!((one.median() - 7.0).abs() < f64::EPSILON);
        assert!((one.p95() - 7.0).abs() < f64::EPSILON);
    }
}
