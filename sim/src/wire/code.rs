//! DCMI return codes as the library hands them to its caller.

use serde::{Deserialize, Serialize};

/// What a DCMI function returns: 0 or a negative code. Unknown codes are carried unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReturnCode(pub i32);

impl ReturnCode {
    /// Success.
    pub const OK: Self = Self(0);
    /// Invalid parameter, also an unknown card or device.
    pub const INVALID_PARAMETER: Self = Self(-8001);
    /// The caller's user, container or virtual machine may not do this.
    pub const NOT_PERMITTED: Self = Self(-8002);
    /// The catch-all for inner failures.
    pub const INNER_ERROR: Self = Self(-8005);
    /// The call ran into its time limit.
    pub const TIMEOUT: Self = Self(-8006);
    /// The device id is not valid, also: there is no device at all.
    pub const INVALID_DEVICE_ID: Self = Self(-8007);
    /// The device does not exist.
    pub const NO_SUCH_DEVICE: Self = Self(-8008);
    /// Not ready; from a health query it means the card is gone.
    pub const NOT_READY: Self = Self(-8012);
    /// The device is busy starting.
    pub const BUSY: Self = Self(-8013);
    /// The reset failed.
    pub const RESET_FAILED: Self = Self(-8015);
    /// A firmware upgrade is going on.
    pub const UPGRADING: Self = Self(-8017);
    /// The resource is taken.
    pub const OCCUPIED: Self = Self(-8020);
    /// Nothing is configured.
    pub const NOT_CONFIGURED: Self = Self(-8023);
    /// This chip or driver generation does not know the call.
    pub const NOT_SUPPORTED: Self = Self(-8255);
}
