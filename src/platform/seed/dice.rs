//! Randomness that is the same everywhere and for ever: no library's generator, whose next version may give other
//! numbers.

use uuid::Builder;

/// What a stream of numbers is for; each thing has its own, so that one never changes another.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    Board = 1,
    Task = 2,
    Work = 3,
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The stream of one thing.
    pub fn new(seed: u64, of: Of, n: u32) -> Self {
        let mut mixed = Self(seed);
        let mixed = mixed.next() ^ ((of as u64) << 32 | u64::from(n));
        let mut own = Self(mixed);
        Self(own.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `count - 1`; 0 for a count of 0.
    pub fn below(&mut self, count: i64) -> i64 {
        (self.next() % count.max(1).unsigned_abs()) as i64
    }

    /// A number of the range, both ends included.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.below(most - least + 1)
    }

    /// True one time in so many.
    pub fn one_in(&mut self, count: i64) -> bool {
        self.below(count) == 0
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as i64) as usize]
    }

    /// One of them, as often as its weight says.
    pub fn weighted<T: Copy>(&mut self, from: &[(i64, T)]) -> T {
        let mut at = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in from {
            at -= weight;
            if at < 0 {
                return *value;
            }
        }
        from[0].1
    }

    /// A UUID of version 7 of this moment, in microseconds since 1970.
    pub fn id(&mut self, at: i64) -> String {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next().to_be_bytes()[..2]);
        Builder::from_unix_timestamp_millis(at.max(0).unsigned_abs() / 1000, &bytes).into_uuid().to_string()
    }

    /// So many hexadecimal digits, in lower case.
    pub fn hex(&mut self, digits: usize) -> String {
        let mut text = String::with_capacity(digits + 16);
        while text.len() < digits {
            text.push_str(&format!("{:016x}", self.next()));
        }
        text.truncate(digits);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut dice = Dice(1_234_567);
        let numbers: Vec<_> = (0..3).map(|_| dice.next()).collect();
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_stream_is_its_seeds_and_its_things_alone() {
        let first = |seed, of, n| Dice::new(seed, of, n).next();
        assert_eq!(first(1, Of::Task, 7), first(1, Of::Task, 7));
        let others = [first(2, Of::Task, 7), first(1, Of::Work, 7), first(1, Of::Task, 8)];
        assert!(others.iter().all(|other| *other != first(1, Of::Task, 7)));
    }

    #[test]
    fn an_id_is_of_its_moment() {
        let id = uuid::Uuid::parse_str(&Dice::new(1, Of::Task, 0).id(1_700_000_000_123_456)).unwrap();
        let (seconds, nanos) = id.get_timestamp().unwrap().to_unix();
        assert_eq!((id.get_version_num(), seconds, nanos / 1_000_000), (7, 1_700_000_000, 123));
    }
}
