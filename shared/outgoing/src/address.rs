//! Distinguishes addresses of the public internet from all others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// One or more addresses of each kind that is not public. Callers test that no request reaches one of them.
#[doc(hidden)]
pub const NOT_PUBLIC: &[&str] = &[
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.1.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
];

/// Whether an address can belong to a public server. Private networks, this machine, link-local addresses, the metadata services of
/// clouds, multicast and everything reserved are not public; neither are IPv6 addresses that stand for such IPv4 addresses.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// A network, such as `10.20.0.0/16` or `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u32,
}

impl Network {
    /// Whether the network contains an address.
    pub fn has(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                (u32::from(first) ^ u32::from(address)).checked_shr(32 - self.bits).unwrap_or_default() == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                (u128::from(first) ^ u128::from(address)).checked_shr(128 - self.bits).unwrap_or_default() == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (first, bits) = text.split_once('/').ok_or(())?;
        let first: IpAddr = first.parse().map_err(drop)?;
        let bits = bits.parse().ok().filter(|bits| *bits <= if first.is_ipv4() { 32 } else { 128 }).ok_or(())?;
        Ok(Self { first, bits })
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // "This network"; shared by carriers; protocol assignments; benchmarks; 6to4 relays; reserved, and broadcast.
        (0, ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18 | 19, _) | (192, 88, 99) | (240.., ..) => true,
        _ => false,
    };
    // The link-local addresses include that of the metadata service.
    !(special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match parts {
        // Mapped addresses and NAT64: the IPv4 address decides.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        // 6to4: the IPv4 address comes after the prefix.
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Teredo and other protocol assignments; documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Only this eighth of the addresses is assigned to the public internet.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_the_internet_are_public() {
        for address in ["1.1.1.1", "93.184.216.34", "100.63.0.1", "172.32.0.1", "198.20.0.1", "2606:4700::1111", "::ffff:1.1.1.1"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_like_it() {
        let has = |network: &str, address: &str| network.parse::<Network>().unwrap().has(address.parse().unwrap());
        for (network, address) in [
            ("10.20.0.0/16", "10.20.255.1"),
            ("10.20.30.40/32", "10.20.30.40"),
            ("10.20.0.0/16", "::ffff:10.20.0.1"),
            ("0.0.0.0/0", "192.168.1.1"),
            ("fd00::/8", "fdff::1"),
            ("::/0", "fe80::1"),
        ] {
            assert!(has(network, address), "{network} {address}");
        }
        for (network, address) in
            [("10.20.0.0/16", "10.21.0.1"), ("10.20.30.40/32", "10.20.30.41"), ("::/0", "10.0.0.1"), ("fd00::/8", "fe80::1")]
        {
            assert!(!has(network, address), "{network} {address}");
        }
        for text in ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "fd00::/129", "/8", "hooks.internal/8", "10.0.0.0/-1"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for address in NOT_PUBLIC {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
