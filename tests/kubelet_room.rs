//! Kubelet's room against a stand-in kubelet, over real sockets.

#[path = "common/kubelet_stub.rs"]
mod kubelet_stub;

#[path = "kubelet_room/calls.rs"]
mod calls;
#[path = "kubelet_room/lists.rs"]
mod lists;
#[path = "kubelet_room/registration.rs"]
mod registration;
#[path = "kubelet_room/room.rs"]
mod room;
#[path = "kubelet_room/sweeps.rs"]
mod sweeps;
