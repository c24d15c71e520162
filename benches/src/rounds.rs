//! Rounds: baseline and product take turns, the first ones are thrown away.

use serde::Serialize;

use crate::Outcome;

/// How many rounds.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Rounds that count.
    pub counted: usize,
    /// Rounds before them that do not.
    pub warm_up: usize,
    /// Whether the baselines are left out; their values are then no numbers.
    pub host_only: bool,
}

/// What was measured in the rounds that count, one value a round.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Series(pub Vec<f64>);

impl Series {
    /// The middle value.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The value that a share of `share` does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        let at = (last as f64 * share).ceil() as usize;
        match share {
            0.5 if !sorted.is_empty() && sorted.len().is_multiple_of(2) => {
                (sorted[last / 2] + sorted[last / 2 + 1]) / 2.0
            }
            0.5 => sorted.get(last / 2).copied().unwrap_or(f64::NAN),
            _ => sorted.get(at).copied().unwrap_or(f64::NAN),
        }
    }
}

/// Baseline and product of the same rounds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Pairs {
    /// The bare way.
    pub baseline: Series,
    /// The host's.
    pub product: Series,
}

impl Pairs {
    /// The median of the rounds' own ratios, product by baseline. The two of one round are neighbours in time, so what
    /// slows the machine for a while slows both.
    pub fn ratio(&self) -> f64 {
        let ratios = self.product.0.iter().zip(&self.baseline.0).map(|(product, baseline)| product / baseline);
        Series(ratios.collect()).median()
    }
}

/// Runs the rounds; which of the two is first changes every round.
pub async fn alternate(
    rounds: Rounds,
    mut baseline: impl AsyncFnMut() -> Outcome<f64>,
    mut product: impl AsyncFnMut() -> Outcome<f64>,
) -> Outcome<Pairs> {
    let mut pairs = Pairs::default();
    let mut baseline = async || if rounds.host_only { Ok(f64::NAN) } else { baseline().await };
    for round in 0..rounds.warm_up + rounds.counted {
        let (bare, own) = if round % 2 == 0 {
            let bare = baseline().await?;
            (bare, product().await?)
        } else {
            let own = product().await?;
            (baseline().await?, own)
        };
        if round >= rounds.warm_up {
            pairs.baseline.0.push(bare);
            pairs.product.0.push(own);
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use std::{
        cell::RefCell,
        future::Future,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_middles() {
        assert_eq!(Series(vec![3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Series(vec![4.0, 1.0, 3.0, 2.0]).median(), 2.5);
        assert_eq!(Series(vec![7.0]).median(), 7.0);
        assert!(Series::default().median().is_nan());
    }

    #[test]
    fn the_99th_percentile_of_few_values_is_the_largest() {
        assert_eq!(Series((1..=15).map(f64::from).collect()).quantile(0.99), 15.0);
        assert_eq!(Series((1..=200).map(f64::from).collect()).quantile(0.99), 199.0);
    }

    #[test]
    fn the_ratio_is_the_median_of_the_rounds_ratios() {
        // A machine that was twice as fast in the last round changes nothing.
        let pairs = Pairs { baseline: Series(vec![100.0, 100.0, 200.0]), product: Series(vec![90.0, 80.0, 180.0]) };
        assert_eq!(pairs.ratio(), 0.9);
    }

    #[test]
    fn sides_take_turns_and_warm_up_rounds_do_not_count() {
        let order = RefCell::new(String::new());
        let side = |name: char, value: f64| {
            order.borrow_mut().push(name);
            Ok(value)
        };
        let rounds = Rounds { counted: 3, warm_up: 1, host_only: false };
        let pairs = now(alternate(rounds, async || side('b', 1.0), async || side('p', 2.0))).unwrap();
        assert_eq!(order.into_inner(), "bppbbppb");
        assert_eq!((pairs.baseline.0, pairs.product.0), (vec![1.0; 3], vec![2.0; 3]));
    }
}
