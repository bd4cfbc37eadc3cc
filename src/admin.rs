//! The administration API over a unix socket: status, history, backup.
//!
//! May import `domain` and `ports`. The socket belongs to root and has mode 0600: whoever can open
//! it may read who holds what. Answers carry JSON documents inside gRPC, so that a newer agent's
//! document can be shown by an older command. The drawback is that the proto alone does not describe
//! them.

mod client;
mod server;

pub use client::{AdminClient, AskError};
pub use server::{AdminError, serve};

mod api {
    #![expect(
        unreachable_pub,
        unused_qualifications,
        clippy::pedantic,
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        clippy::clone_on_ref_ptr,
        reason = "generated from proto/admin/v1/api.proto, which documents it"
    )]
    include!(concat!(env!("OUT_DIR"), "/admin_v1/ascend.admin.v1.rs"));
}
