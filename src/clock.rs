//! The only reader of clocks and maker of ids.

use std::fs;
use std::io;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use uuid::Uuid;

use crate::domain::ids::{AllocationId, GrantId};
use crate::domain::time::{BootId, BootTime, Stamp};
use crate::ports::{Clock, Ids};

const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    boot_id: BootId,
}

impl SystemClock {
    /// Reads the boot id; the clocks are read at each call.
    ///
    /// # Errors
    /// When the kernel's boot id cannot be read or is not a UUID.
    pub fn open() -> io::Result<Self> {
        Self::open_at(Path::new(BOOT_ID_FILE))
    }

    fn open_at(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        let uuid = Uuid::parse_str(text.trim())
            .map_err(|cause| io::Error::new(io::ErrorKind::InvalidData, cause))?;
        Ok(Self {
            boot_id: BootId(uuid),
        })
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Stamp {
        let boot = clock_gettime(ClockId::Boottime);
        let wall = clock_gettime(ClockId::Realtime);
        let boot_ns = boot
            .tv_sec
            .saturating_mul(1_000_000_000)
            .saturating_add(boot.tv_nsec);
        Stamp {
            boot_id: self.boot_id,
            boot_time: BootTime(u64::try_from(boot_ns).unwrap_or(0)),
            utc_ns: wall
                .tv_sec
                .saturating_mul(1_000_000_000)
                .saturating_add(wall.tv_nsec),
        }
    }
}

/// Time-ordered random ids.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn allocation(&self) -> AllocationId {
        AllocationId(new_uuid())
    }

    fn grant(&self) -> GrantId {
        GrantId(new_uuid())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the door the ban points to"
)]
fn new_uuid() -> Uuid {
    Uuid::now_v7()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_time_moves_forward_within_one_boot() {
        let clock = SystemClock::open().expect("Linux has a boot id");
        let (first, second) = (clock.now(), clock.now());
        assert_eq!(first.boot_id, second.boot_id);
        assert!(second.boot_time >= first.boot_time);
    }

    #[test]
    fn a_boot_id_that_is_no_uuid_is_an_error() {
        let dir = tempfile::tempdir().expect("temp dir");
        let path = dir.path().join("boot_id");
        fs::write(&path, "zero\n").expect("write");
        assert!(SystemClock::open_at(&path).is_err());
    }
}
