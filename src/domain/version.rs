//! Version order of packages and the `min_kandev_version` check.
//!
//! Two different questions: which of two package versions is the newer (any text is a version), and whether this host
//! is new enough for a manifest. Contract: manifest.md §7 and §8, with its "better": semantic versions first.

use std::cmp::Ordering;

use super::clean::quote;

/// Orders two package versions: as semantic versions when both are (build metadata does not count, as the
/// specification says), else by dotted numbers with missing segments as 0, else byte-wise.
///
/// Not an order to sort by: among versions of several kinds it need not be transitive, and the library's sort panics on
/// such a one. The greatest is found by [`greatest`].
pub fn compare(a: &str, b: &str) -> Ordering {
    if let (Ok(a), Ok(b)) = (semver::Version::parse(a), semver::Version::parse(b)) {
        return a.cmp_precedence(&b);
    }
    match (numbers(a), numbers(b)) {
        (Some(a), Some(b)) => compare_numbers(&a, &b),
        _ => a.cmp(b),
    }
}

/// Where the greatest of these versions stands: none before it is greater, and none behind it. Of two that count as
/// equal it is the one that comes last by name. With versions of several kinds the answer may depend on their order.
pub fn greatest<'a>(versions: impl IntoIterator<Item = &'a str>) -> Option<usize> {
    let not_less = |a: &str, b: &str| compare(a, b).then_with(|| a.cmp(b)).is_ge();
    let best = versions.into_iter().enumerate().reduce(|best, next| if not_less(next.1, best.1) { next } else { best });
    best.map(|(at, _)| at)
}

/// The dotted numbers of a text such as `1.10`; `None` when a segment is not a number of at most 20 digits.
fn numbers(text: &str) -> Option<Vec<u128>> {
    text.split('.').map(number).collect()
}

fn number(segment: &str) -> Option<u128> {
    let digits = segment.bytes().all(|b| b.is_ascii_digit());
    (digits && (1..=20).contains(&segment.len())).then(|| segment.parse().ok()).flatten()
}

fn compare_numbers(a: &[u128], b: &[u128]) -> Ordering {
    let at = |list: &[u128], i: usize| list.get(i).copied().unwrap_or(0);
    (0..a.len().max(b.len())).map(|i| at(a, i).cmp(&at(b, i))).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// Why `min_kandev_version` keeps a package out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MinVersionError {
    /// Not 1 to 3 numbers, with an optional `v` and an optional pre-release.
    #[error("plugins: min_kandev_version {0} is not a release version")]
    NotARelease(String),
    /// The host speaks an older contract.
    #[error(
        "plugins: requires kandev >= {minimum}, running {host}: update this host, or raise its setting compat_version"
    )]
    TooOld {
        /// What the manifest asks for, as written.
        minimum: String,
        /// What the host says it is (`compat_version`).
        host: String,
    },
}

/// Reads a `min_kandev_version`: an optional `v` or `V`, one to three numbers, an optional pre-release.
fn release(text: &str) -> Option<semver::Version> {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let text = text.split('+').next().unwrap_or(text);
    let (numbers, pre) = text.split_once('-').map_or((text, ""), |(numbers, pre)| (numbers, pre));
    if text.ends_with('-') {
        return None;
    }
    let mut segments = numbers.split('.').map(|segment| u64::try_from(number(segment)?).ok());
    let major = segments.next()??;
    let minor = segments.next().map_or(Some(0), |n| n)?;
    let patch = segments.next().map_or(Some(0), |n| n)?;
    if segments.next().is_some() {
        return None;
    }
    Some(semver::Version {
        major,
        minor,
        patch,
        pre: semver::Prerelease::new(pre).ok()?,
        build: semver::BuildMetadata::EMPTY,
    })
}

/// Whether `minimum` has the form of a release version; an empty text counts as absent and is lawful.
pub fn check_minimum_form(minimum: &str) -> Result<(), MinVersionError> {
    if minimum.is_empty() || release(minimum).is_some() {
        return Ok(());
    }
    Err(MinVersionError::NotARelease(quote(minimum)))
}

/// Checks a manifest's `min_kandev_version` against the host's `compat_version`.
///
/// A host that is not a plain release (empty, `dev`, the output of `git describe`) skips the comparison but still
/// refuses a text that is no version, which is a mistake of the manifest on every host.
pub fn check_minimum(minimum: &str, host: &str) -> Result<(), MinVersionError> {
    check_minimum_form(minimum)?;
    let (Some(wanted), Some(running)) = (release(minimum), release(host)) else {
        return Ok(());
    };
    if !running.pre.is_empty() || wanted.cmp_precedence(&running).is_le() {
        return Ok(());
    }
    Err(MinVersionError::TooOld { minimum: minimum.to_owned(), host: host.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn package_versions_are_ordered_as_semver_with_a_numeric_and_a_byte_fallback() {
        for (a, b, order) in [
            ("1.0.0", "1.0.0", Ordering::Equal),
            ("1.0.0-beta", "1.0.0", Ordering::Less),
            ("1.10.0-rc1", "1.9.0", Ordering::Greater),
            ("1.0.0-rc.2", "1.0.0-rc.10", Ordering::Less),
            ("1.0.0+a", "1.0.0+b", Ordering::Equal),
            ("1.0", "1.0.0", Ordering::Equal),
            ("1.9", "1.10", Ordering::Less),
            ("2", "1.99", Ordering::Greater),
            ("1.2.3.4", "1.2.3.10", Ordering::Less),
            ("v1.0", "v1.1", Ordering::Less),
            ("nightly", "stable", Ordering::Less),
        ] {
            assert_eq!(compare(a, b), order, "{a} and {b}");
            assert_eq!(compare(b, a), order.reverse(), "{b} and {a}");
        }
    }

    #[test]
    fn the_minimum_is_compared_as_a_version_not_as_text() {
        let too_old = |minimum: &str, host: &str| {
            Err(MinVersionError::TooOld { minimum: minimum.to_owned(), host: host.to_owned() })
        };
        assert_eq!(check_minimum("0.91.1", "0.91.0"), too_old("0.91.1", "0.91.0"));
        assert_eq!(check_minimum("v0.91.1", "0.91.0"), too_old("v0.91.1", "0.91.0"));
        assert_eq!(check_minimum("0.100.0", "0.99.0"), too_old("0.100.0", "0.99.0"));
        assert_eq!(check_minimum("1.0.0-rc.1", "0.91.0"), too_old("1.0.0-rc.1", "0.91.0"));
        for (minimum, host) in [
            ("v0.88.0", "0.91.0"),
            ("0.88", "0.91.0"),
            ("V1", "v1.0"),
            ("0.91.0", "0.91.0"),
            ("0.91.0-rc.1", "0.91.0"),
            ("", "0.91.0"),
            ("9.9.9", "dev"),
            ("9.9.9", ""),
            ("9.9.9", "0.91.0-12-gabcdef0"),
        ] {
            assert_eq!(check_minimum(minimum, host), Ok(()), "{minimum} on {host}");
        }
    }

    #[test]
    fn a_text_that_is_no_version_is_refused_on_every_host() {
        for minimum in ["abc", "1.2.3.4", "1..2", "-1", "1.0-", "1.x", " 1.0", "99999999999999999999999"] {
            for host in ["0.91.0", "dev"] {
                assert_eq!(check_minimum(minimum, host), Err(MinVersionError::NotARelease(quote(minimum))));
            }
        }
    }

    #[test]
    fn the_refusal_names_both_versions_and_the_setting() {
        let text = check_minimum("0.92", "0.91.0").map_err(|e| e.to_string());
        assert_eq!(
            text,
            Err("plugins: requires kandev >= 0.92, running 0.91.0: update this host, or raise its setting compat_version"
                .to_owned())
        );
    }

    proptest! {
        #[test]
        fn comparing_is_antisymmetric_and_never_panics(a in ".{0,20}|[0-9.]{0,12}", b in ".{0,20}|[0-9.]{0,12}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            let _ = check_minimum(&a, &b);
        }
    }
}
