//! The network port of a chip.

use std::ffi::{c_int, c_uint};

use super::out::Out;
use super::{INNER_ERROR, ask, export, number, word};
use crate::abi::IpAddr;
use crate::client::At;
use crate::wire::{Address, Answer, ChipQuery, Failure};

const IP_V4: c_uint = 0;
const IP_V6: c_uint = 1;

export! {
    fn dcmi_get_device_network_health(card: c_int, device: c_int, health: Out<c_uint>) =
        |symbol| write_network_health(symbol, At::Device(card, device), health);
    fn dcmiv2_get_device_network_health(device: c_int, health: Out<c_uint>) =
        |symbol| write_network_health(symbol, At::Logic(device), health);

    fn dcmi_get_device_ip(
        card: c_int,
        device: c_int,
        port: c_uint,
        port_id: c_int,
        address: Out<IpAddr>,
        mask: Out<IpAddr>,
    ) = |symbol| {
        let (place, mask) = (address.place()?, mask.place()?);
        let query = ChipQuery::Address(port, port_id, place.read().ip_type);
        let Answer::Address(address) = ask(symbol, At::Device(card, device), query)? else {
            return Err(INNER_ERROR);
        };
        place.write(ip_addr(address, address.octets()));
        mask.write(ip_addr(address, address.mask()));
        Ok(())
    };
}

fn write_network_health(symbol: &'static str, at: At, health: Out<c_uint>) -> Result<(), Failure> {
    let place = health.place()?;
    place.write(word(number(&ask(symbol, at, ChipQuery::NetworkHealth)?)?));
    Ok(())
}

fn ip_addr(address: Address, bytes: [u8; 16]) -> IpAddr {
    IpAddr {
        bytes,
        ip_type: if address.is_v6() { IP_V6 } else { IP_V4 },
    }
}
