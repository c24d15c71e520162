//! Which network addresses a package may be fetched from: only those anybody on the Internet could reach.
//!
//! Pure classification of one address. Looking names up, and checking at the right moment, is `fetch`'s part.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// What is told of a package at another address.
pub const PUBLIC_ONLY: &str =
    "packages are fetched from public addresses only, unless install.allow_private_addresses is set";

/// Why an address is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotPublic {
    /// This machine.
    #[error("a loopback address")]
    Loopback,
    /// No machine in particular; many systems read it as this one.
    #[error("an unspecified address")]
    Unspecified,
    /// A private network, carrier-grade NAT and unique local addresses included.
    #[error("a private address")]
    Private,
    /// One network segment; cloud metadata services live here.
    #[error("a link-local address")]
    LinkLocal,
    /// More than one machine.
    #[error("a multicast or broadcast address")]
    Multicast,
    /// Set aside for documentation, tests, or the future.
    #[error("a reserved address")]
    Reserved,
}

/// Ranges of IPv4 that are not public (IANA special-purpose registry), as (first address, prefix length, why).
const V4_RANGES: [(Ipv4Addr, u32, NotPublic); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, NotPublic::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, NotPublic::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, NotPublic::Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, NotPublic::Loopback),
    (Ipv4Addr::new(168, 63, 129, 16), 32, NotPublic::LinkLocal), // Azure's metadata and DNS service
    (Ipv4Addr::new(169, 254, 0, 0), 16, NotPublic::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, NotPublic::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, NotPublic::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, NotPublic::Reserved),
    (Ipv4Addr::new(192, 88, 99, 0), 24, NotPublic::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, NotPublic::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, NotPublic::Reserved),
    (Ipv4Addr::new(198, 51, 100, 0), 24, NotPublic::Reserved),
    (Ipv4Addr::new(203, 0, 113, 0), 24, NotPublic::Reserved),
    (Ipv4Addr::new(224, 0, 0, 0), 4, NotPublic::Multicast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, NotPublic::Reserved),
];

/// The address that the URL's host is, when it is no name. The parser has turned every spelling of an IP address
/// (decimal, octal, hexadecimal, shortened) into one form.
pub fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// `Ok` for an address that anybody on the Internet could reach.
///
/// An IPv6 address that only wraps an IPv4 one (mapped, compatible, 6to4, NAT64, ISATAP) is judged by the inner one,
/// since the packets end there; Teredo wraps two and is refused.
pub fn check_public(address: IpAddr) -> Result<(), NotPublic> {
    match address {
        IpAddr::V4(address) => check_v4(address),
        IpAddr::V6(address) => check_v6(address),
    }
}

fn check_v4(address: Ipv4Addr) -> Result<(), NotPublic> {
    if address == Ipv4Addr::BROADCAST {
        return Err(NotPublic::Multicast);
    }
    let within = |(first, prefix, _): &&(Ipv4Addr, u32, NotPublic)| {
        (address.to_bits() ^ first.to_bits()).checked_shr(32 - prefix).unwrap_or(0) == 0
    };
    V4_RANGES.iter().find(within).map_or(Ok(()), |(_, _, why)| Err(*why))
}

fn check_v6(address: Ipv6Addr) -> Result<(), NotPublic> {
    if address.is_unspecified() {
        return Err(NotPublic::Unspecified);
    }
    if address.is_loopback() {
        return Err(NotPublic::Loopback);
    }
    if let Some(inner) = inner_v4(address) {
        return check_v4(inner);
    }
    match address.segments() {
        [first, ..] if first & 0xff00 == 0xff00 => Err(NotPublic::Multicast),
        [first, ..] if first & 0xffc0 == 0xfe80 => Err(NotPublic::LinkLocal),
        // Unique local, and the site-local addresses they replaced.
        [first, ..] if first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfec0 => Err(NotPublic::Private),
        // 64:ff9b:1::/48, NAT64 inside one network.
        [0x64, 0xff9b, 1, ..] => Err(NotPublic::Private),
        // IETF protocol assignments (Teredo, ORCHID, benchmarks), documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => Err(NotPublic::Reserved),
        [0x3fff, second, ..] if second < 0x1000 => Err(NotPublic::Reserved),
        // Only 2000::/3 is given out for global use.
        [first, ..] if first & 0xe000 == 0x2000 => Ok(()),
        _ => Err(NotPublic::Reserved),
    }
}

/// The IPv4 address that an IPv6 address stands for.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // Compatible (::a.b.c.d), mapped (::ffff:a.b.c.d), translated (::ffff:0:a.b.c.d).
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => Some(join(high, low)),
        // NAT64, 64:ff9b::/96.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(join(high, low)),
        // 6to4, 2002:aabb:ccdd::/48.
        [0x2002, high, low, ..] => Some(join(high, low)),
        // ISATAP interface identifier, in any network.
        [.., 0 | 0x200, 0x5efe, high, low] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(text: &str) -> Result<(), NotPublic> {
        check_public(text.parse().unwrap())
    }

    #[test]
    fn every_address_of_the_table_has_its_verdict() {
        use NotPublic::*;
        let refused = [
            ("0.0.0.0", Unspecified),
            ("0.1.2.3", Unspecified),
            ("10.0.0.1", Private),
            ("10.255.255.255", Private),
            ("100.64.0.1", Private),
            ("100.127.255.255", Private),
            ("127.0.0.1", Loopback),
            ("127.1.2.3", Loopback),
            ("168.63.129.16", LinkLocal),
            ("169.254.169.254", LinkLocal),
            ("169.254.0.0", LinkLocal),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.0.0.1", Reserved),
            ("192.0.2.1", Reserved),
            ("192.88.99.1", Reserved),
            ("192.168.1.1", Private),
            ("198.18.0.1", Reserved),
            ("198.19.255.255", Reserved),
            ("198.51.100.1", Reserved),
            ("203.0.113.9", Reserved),
            ("224.0.0.1", Multicast),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Multicast),
            ("::", Unspecified),
            ("::1", Loopback),
            ("::127.0.0.1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:169.254.169.254", LinkLocal),
            ("::ffff:0:10.0.0.1", Private),
            ("64:ff9b::a00:1", Private),
            ("64:ff9b:1::a00:1", Private),
            ("2002:7f00:1::", Loopback),
            ("2002:a9fe:a9fe::1", LinkLocal),
            ("2001:0:1::1", Reserved),
            ("2001:db8::1", Reserved),
            ("2606:4700::5efe:a00:1", Private),
            ("2606:4700::200:5efe:7f00:1", Loopback),
            ("3fff::1", Reserved),
            ("fc00::1", Private),
            ("fd00:ec2::254", Private),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("fec0::1", Private),
            ("ff02::1", Multicast),
            ("100::1", Reserved),
            ("5f00::1", Reserved),
        ];
        for (text, why) in refused {
            assert_eq!(verdict(text), Err(why), "{text}");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:4860:4860::8888",
            "168.63.129.17",
        ];
        for text in public {
            assert_eq!(verdict(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn an_address_is_told_from_a_name_however_it_is_spelt() {
        let loopback = Some(IpAddr::from([127, 0, 0, 1]));
        for (text, expected) in [
            ("http://127.0.0.1:8080/p", loopback),
            ("http://127.1/p", loopback),
            ("http://0x7f000001/p", loopback),
            ("http://017700000001/p", loopback),
            ("https://[::1]/p", Some(IpAddr::V6(Ipv6Addr::LOCALHOST))),
            ("https://localhost/p", None),
            ("https://10.a.test/p", None),
            ("file:///p", None),
        ] {
            assert_eq!(literal(&Url::parse(text).unwrap()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_wrapping_of_an_ipv4_address_has_its_verdict(bits: u32) {
            // 0.0.0.0/16 inside the compatible form is `::` and `::1` themselves, with verdicts of their own.
            prop_assume!(bits > 0xffff);
            let inner = Ipv4Addr::from_bits(bits);
            let (high, low) = ((bits >> 16) as u16, bits as u16);
            let wrapped = [
                Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low), Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
                Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low), Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 1, 2, 3, 4, 5), Ipv6Addr::new(0x2606, 1, 2, 3, 0, 0x5efe, high, low),
            ];
            for address in wrapped {
                prop_assert_eq!(check_public(IpAddr::V6(address)), check_public(IpAddr::V4(inner)), "{}", address);
            }
        }
    }
}
