//! The compiled protocols. Private: other rooms see the domain's nouns only. Each API has a module
//! of its own, because package names repeat among kubelet's APIs.

/// Device plugin v1beta1.
#[expect(
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
pub(super) mod deviceplugin {
    include!(concat!(env!("OUT_DIR"), "/deviceplugin_v1beta1/v1beta1.rs"));
}

/// Pod-resources v1.
#[expect(
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
pub(super) mod podresources {
    include!(concat!(env!("OUT_DIR"), "/podresources_v1/v1.rs"));
}
