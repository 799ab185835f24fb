//! The address of a request.

use std::net::{IpAddr, Ipv6Addr};

/// The network address of a client, as an extension of its requests. It comes from the context that Lambda adds to the request.
/// Headers such as `X-Forwarded-For` are not read, because clients can set them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    counted: String,
    address: String,
}

impl Client {
    /// The client at this address. Of an IPv6 address, only the first 64 bits count, because a client can choose the others.
    pub fn at(address: &str) -> Self {
        let counted = match address.parse() {
            Ok(IpAddr::V6(v6)) => match v6.to_ipv4_mapped() {
                Some(v4) => v4.to_string(),
                None => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).to_string(),
            },
            _ => address.to_owned(),
        };
        Self { counted, address: address.to_owned() }
    }

    /// The whole address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The part of the address that counts.
    pub fn as_str(&self) -> &str {
        &self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::Client;

    #[test]
    fn who_owns_a_network_is_one_client() {
        for (address, client) in [
            ("203.0.113.9", "203.0.113.9"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::9", "2001:db8:1:2::"),
            ("2001:db8:1:3::9", "2001:db8:1:3::"),
            ("", ""),
        ] {
            assert_eq!(Client::at(address).as_str(), client);
        }
    }
}
