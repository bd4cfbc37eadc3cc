//! The address of a chip's network port: an IP address and how many of its bits name the network.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An address such as `10.20.0.11/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address {
    ip: IpAddr,
    prefix: u8,
}

impl Address {
    /// The address so many places further, without a look at the network's end.
    #[must_use]
    pub fn after(self, places: u32) -> Self {
        let ip = match self.ip {
            IpAddr::V4(ip) => IpAddr::V4(ip.to_bits().wrapping_add(places).into()),
            IpAddr::V6(ip) => IpAddr::V6(ip.to_bits().wrapping_add(u128::from(places)).into()),
        };
        Self { ip, ..self }
    }

    /// It is of the sixth version of the protocol, not of the fourth.
    #[must_use]
    pub fn is_v6(self) -> bool {
        self.ip.is_ipv6()
    }

    /// Its bytes in network order; the fourth version fills the first four.
    #[must_use]
    pub fn octets(self) -> [u8; 16] {
        octets(self.ip)
    }

    /// The bytes of the network mask, as for `octets`.
    #[must_use]
    pub fn mask(self) -> [u8; 16] {
        let host_bits = u32::from(self.bits() - self.prefix);
        let ones = u128::MAX.checked_shl(host_bits).unwrap_or(0);
        match self.ip {
            IpAddr::V4(_) => {
                let ones = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                octets(IpAddr::V4(ones.into()))
            }
            IpAddr::V6(_) => octets(IpAddr::V6(ones.into())),
        }
    }

    fn bits(self) -> u8 {
        if self.is_v6() { 128 } else { 32 }
    }
}

fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || format!("'{text}' is not an address such as 10.20.0.11/24 or fd00::11/64");
        let (ip, prefix) = text.split_once('/').ok_or_else(refuse)?;
        let address = Self {
            ip: ip.parse().map_err(|_| refuse())?,
            prefix: prefix.parse().map_err(|_| refuse())?,
        };
        if address.prefix > address.bits() {
            return Err(refuse());
        }
        Ok(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.ip, self.prefix)
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_follow_from_the_prefix() {
        let v4: Address = "10.20.0.11/20".parse().unwrap();
        assert_eq!(v4.mask()[..5], [255, 255, 240, 0, 0]);
        assert_eq!(v4.after(250).to_string(), "10.20.1.5/20");
        let v6: Address = "fd00::11/64".parse().unwrap();
        assert_eq!(v6.mask()[..9], [255, 255, 255, 255, 255, 255, 255, 255, 0]);
        assert_eq!("::1/0".parse::<Address>().unwrap().mask(), [0; 16]);
        assert_eq!("1.2.3.4/0".parse::<Address>().unwrap().mask(), [0; 16]);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "10.0.0.1", "10.0.0.1/33", "fd00::1/129", "x/8"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
