//! The table: what was measured, against which bound, and whether it holds.

use serde::Serialize;

use crate::rounds::{Pairs, Series};

/// One line of the table.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Short name, also the file of the raw rounds.
    pub row: &'static str,
    /// What was measured.
    pub what: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// The values.
    pub values: Values,
    /// What must be reached.
    pub bound: Bound,
}

/// Measured values, with a baseline or alone.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Values {
    /// Against a baseline.
    Pairs(Pairs),
    /// Alone.
    Single(Series),
}

/// What must be reached.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Product by baseline, a rate.
    RatioAtLeast(f64),
    /// Product by baseline, a time.
    RatioAtMost(f64),
    /// Median, and 99th percentile.
    AtMost {
        /// Of the median.
        median: f64,
        /// Of the 99th percentile, when it is bounded.
        p99: Option<f64>,
    },
}

/// A line as it is told.
#[derive(Debug, Serialize)]
pub struct Told {
    row: &'static str,
    what: &'static str,
    unit: &'static str,
    rounds: usize,
    baseline_median: Option<f64>,
    baseline_p99: Option<f64>,
    median: f64,
    p99: f64,
    ratio: Option<f64>,
    bound: String,
    pass: bool,
}

impl Line {
    /// Medians, ratio and verdict.
    pub fn told(&self) -> Told {
        let (baseline, product, ratio) = match &self.values {
            Values::Pairs(pairs) => (Some(&pairs.baseline), &pairs.product, Some(pairs.ratio())),
            Values::Single(series) => (None, series, None),
        };
        let (median, p99) = (product.median(), product.quantile(0.99));
        let (bound, pass) = match self.bound {
            Bound::RatioAtLeast(least) => (format!("ratio >= {least}"), ratio.is_some_and(|ratio| ratio >= least)),
            Bound::RatioAtMost(most) => (format!("ratio <= {most}"), ratio.is_some_and(|ratio| ratio <= most)),
            Bound::AtMost { median: most, p99: None } => (format!("median <= {most}"), median <= most),
            Bound::AtMost { median: most, p99: Some(tail) } => {
                (format!("median <= {most}, p99 <= {tail}"), median <= most && p99 <= tail)
            }
        };
        Told {
            row: self.row,
            what: self.what,
            unit: self.unit,
            rounds: product.0.len(),
            baseline_median: baseline.map(Series::median),
            baseline_p99: baseline.map(|baseline| baseline.quantile(0.99)),
            median,
            p99,
            ratio,
            bound,
            pass,
        }
    }
}

impl Told {
    /// Whether the bound holds.
    pub fn pass(&self) -> bool {
        self.pass
    }
}

/// The table as Markdown.
pub fn table(lines: &[Told]) -> String {
    let mut text = String::from(
        "| what | unit | rounds | baseline: median (p99) | host: median (p99) | ratio | bound | |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for line in lines {
        let baseline = match (line.baseline_median, line.baseline_p99) {
            (Some(median), Some(p99)) => format!("{} ({})", short(median), short(p99)),
            _ => "-".to_owned(),
        };
        let ratio = line.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let verdict = if line.pass { "pass" } else { "FAIL" };
        text.push_str(&format!(
            "| {} | {} | {} | {baseline} | {} ({}) | {ratio} | {} | {verdict} |\n",
            line.what,
            line.unit,
            line.rounds,
            short(line.median),
            short(line.p99),
            line.bound,
        ));
    }
    text
}

/// Three digits or so.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(values: Values, bound: Bound) -> Told {
        Line { row: "row", what: "what", unit: "ms", values, bound }.told()
    }

    fn pairs(baseline: f64, product: f64) -> Values {
        Values::Pairs(Pairs { baseline: Series(vec![baseline; 3]), product: Series(vec![product; 3]) })
    }

    #[test]
    fn a_rate_passes_at_its_bound_and_fails_below() {
        assert!(told(pairs(100.0, 85.0), Bound::RatioAtLeast(0.85)).pass());
        assert!(!told(pairs(100.0, 84.9), Bound::RatioAtLeast(0.85)).pass());
    }

    #[test]
    fn a_time_passes_at_its_bound_and_fails_above() {
        assert!(told(pairs(10.0, 11.0), Bound::RatioAtMost(1.1)).pass());
        assert!(!told(pairs(10.0, 11.1), Bound::RatioAtMost(1.1)).pass());
    }

    #[test]
    fn median_and_tail_must_both_hold() {
        let values = || Values::Single(Series(vec![1.0, 2.0, 9.0]));
        assert!(told(values(), Bound::AtMost { median: 2.0, p99: None }).pass());
        assert!(told(values(), Bound::AtMost { median: 2.0, p99: Some(9.0) }).pass());
        assert!(!told(values(), Bound::AtMost { median: 2.0, p99: Some(8.9) }).pass());
        assert!(!told(values(), Bound::AtMost { median: 1.9, p99: Some(9.0) }).pass());
    }

    #[test]
    fn rows_without_values_fail() {
        assert!(!told(Values::Single(Series::default()), Bound::AtMost { median: 1.0, p99: None }).pass());
        assert!(!told(Values::Pairs(Pairs::default()), Bound::RatioAtMost(9.0)).pass());
    }

    #[test]
    fn the_table_has_a_line_for_each_row() {
        let text = table(&[told(pairs(100.0, 85.0), Bound::RatioAtLeast(0.85))]);
        let line = text.lines().nth(2);
        assert_eq!(line, Some("| what | ms | 3 | 100 (100) | 85.0 (85.0) | 0.85 | ratio >= 0.85 | pass |"));
    }
}
