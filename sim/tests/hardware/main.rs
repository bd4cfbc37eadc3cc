//! The library and the daemon together: a C program compiled against our header uses
//! `libdcmi.so`, while the test changes the hardware over its socket.

#[cfg(test)]
mod abi;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod enumeration;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod injection;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod machines;
#[cfg(test)]
mod network;
#[cfg(test)]
mod old_driver;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod quirks;
#[cfg(test)]
mod reset;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod vdevice_faults;
#[cfg(test)]
mod vdevices;
