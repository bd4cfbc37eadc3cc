//! Kubelet's room against a stand-in kubelet, over real sockets.

#[cfg(test)]
#[path = "common/kubelet_stub.rs"]
mod kubelet_stub;

#[cfg(test)]
#[path = "kubelet_room/calls.rs"]
mod calls;
#[cfg(test)]
#[path = "kubelet_room/lists.rs"]
mod lists;
#[cfg(test)]
#[path = "kubelet_room/records.rs"]
mod records;
#[cfg(test)]
#[path = "kubelet_room/registration.rs"]
mod registration;
#[cfg(test)]
#[path = "kubelet_room/room.rs"]
mod room;
#[cfg(test)]
#[path = "kubelet_room/sweeps.rs"]
mod sweeps;
