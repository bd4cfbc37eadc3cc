//! Kubelet: registration, the device-plugin service, pod-resources and kubelet's checkpoint file.
//!
//! May import `domain` and `ports`. Invariants: one registration generation per resource is alive
//! at a time; the stream of an old one is ended and its server gone before the next one registers
//! (kubelet up to 1.35 takes the end of an old stream for the end of the new one); every generation
//! has a socket name of its own; nothing but sockets made by this room is ever removed; no panic in
//! a call and no silent peer ends the process. The drawback: a plain HTTP/2 stack refuses the
//! socket path as `:authority`, so kubelet before 1.26 cannot talk to this room.

mod activity;
mod api;
mod backoff;
mod checkpoint;
mod claim;
mod config;
mod connection;
mod directory_watch;
mod generation;
mod list_stream;
mod look;
mod messages;
mod pod_resources;
mod records;
mod registration;
mod serve;
mod service;
mod snapshot;
mod socket_dir;
mod status;

pub use activity::KubeletActivity;
pub use checkpoint::{CHECKPOINT_MAX_BYTES, CheckpointError, parse_checkpoint};
pub use config::{KubeletConfig, KubeletTimes, SocketOwner};
pub use generation::RegisterError;
pub use look::{LookError, RecordsLook, look_at_folder, look_at_records, look_at_registry};
pub use records::RecordsReader;
pub use serve::{KubeletParts, serve};
pub use snapshot::{KubeletStatus, RegistrationPhase, ResourceStatus};
pub use socket_dir::SocketDirError;
