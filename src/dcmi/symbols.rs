//! Loads the library and looks up each function by itself.
//!
//! Invariant: what was loaded is never unloaded, so a function pointer found here is good for the
//! life of the process.

use std::fmt;
use std::mem::ManuallyDrop;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY};

use super::layout::{
    BoardInfo, ChipInfo, ChipInfoV2, Die, Event, EventFilter, PcieInfoAll, ProcessMemory,
};
use crate::domain::causes::with_causes;

/// What the library calls for each event.
pub(super) type EventCallback = extern "C" fn(*mut Event);

/// The file could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} cannot be loaded: {cause}; the libraries it needs must be found too, so add the driver's lib64, lib64/driver and lib64/common directories to LD_LIBRARY_PATH", path = path.display())]
pub struct LoadError {
    /// The library, symlinks resolved.
    pub path: PathBuf,
    /// The loader's words, causes included.
    pub cause: String,
}

macro_rules! symbols {
    ($($name:ident($($argument:ty),* $(,)?);)*) => {
        /// Every function this program calls; `None` where the library lacks it.
        pub(super) struct Symbols {
            /// Keeps the library loaded; never dropped.
            _library: ManuallyDrop<Library>,
            missing: Vec<&'static str>,
            $(pub(super) $name: Option<unsafe extern "C" fn($($argument),*) -> c_int>,)*
        }

        impl Symbols {
            fn resolve(library: Library) -> Self {
                let mut missing = Vec::new();
                $(
                    // SAFETY: the type is the one the driver's manual gives for this name. The
                    // pointer is copied out of the guard, which is sound because the library is
                    // never unloaded.
                    let found = unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) -> c_int>(
                            stringify!($name),
                        )
                    };
                    let $name = match found {
                        Ok(symbol) => Some(*symbol),
                        Err(_) => {
                            missing.push(stringify!($name));
                            None
                        }
                    };
                )*
                Self { _library: ManuallyDrop::new(library), missing, $($name,)* }
            }
        }
    };
}

symbols! {
    dcmi_init();
    dcmi_get_card_list(*mut c_int, *mut c_int, c_int);
    dcmi_get_device_num_in_card(c_int, *mut c_int);
    dcmi_get_device_logic_id(*mut c_int, c_int, c_int);
    dcmi_get_device_phyid_from_logicid(c_uint, *mut c_uint);
    dcmi_get_dcmi_version(*mut c_char, c_uint);
    dcmi_get_driver_version(*mut c_char, c_uint);
    dcmi_get_device_chip_info_v2(c_int, c_int, *mut ChipInfoV2);
    dcmi_get_device_chip_info(c_int, c_int, *mut ChipInfo);
    dcmi_get_device_board_info(c_int, c_int, *mut BoardInfo);
    dcmi_get_mainboard_id(c_int, c_int, *mut c_uint);
    dcmi_get_device_info(c_int, c_int, c_uint, c_uint, *mut c_void, *mut c_uint);
    dcmi_get_device_die_v2(c_int, c_int, c_uint, *mut Die);
    dcmi_get_device_pcie_info_v2(c_int, c_int, *mut PcieInfoAll);
    dcmi_get_product_type(c_int, c_int, *mut c_char, c_int);
    dcmi_get_affinity_cpu_info_by_device_id(c_int, c_int, *mut c_char, *mut c_int);
    dcmi_get_device_health(c_int, c_int, *mut c_uint);
    dcmi_get_device_errorcode_v2(c_int, c_int, *mut c_int, *mut c_uint, c_uint);
    dcmi_get_device_resource_info(c_int, c_int, *mut ProcessMemory, *mut c_int);
    dcmi_get_multi_die_policy(*mut c_uint);
    dcmi_set_multi_die_policy(c_uint);
    dcmi_subscribe_fault_event(c_int, c_int, EventFilter, EventCallback);
    dcmiv2_init();
    dcmiv2_get_device_list(*mut c_int, *mut c_int, c_int);
    dcmiv2_get_all_device_count(*mut c_int);
    dcmiv2_get_chip_phy_id_by_dev_id(c_int, *mut c_uint);
    dcmiv2_get_dcmi_version(*mut c_char, c_uint);
    dcmiv2_get_driver_version(*mut c_char, c_uint);
    dcmiv2_get_device_chip_info(c_int, *mut ChipInfoV2);
    dcmiv2_get_device_board_info(c_int, *mut BoardInfo);
    dcmiv2_get_mainboard_id(c_int, *mut c_uint);
    dcmiv2_get_device_info(c_int, c_uint, c_uint, *mut c_void, *mut c_uint);
    dcmiv2_get_device_die_id(c_int, c_uint, *mut Die);
    dcmiv2_get_device_pcie_info(c_int, *mut PcieInfoAll);
    dcmiv2_get_affinity_cpu_info_by_dev_id(c_int, *mut c_char, *mut c_int);
    dcmiv2_get_device_health(c_int, *mut c_uint);
    dcmiv2_get_device_error_code_list(c_int, *mut c_int, *mut c_uint, c_uint);
    dcmiv2_get_device_proc_mem_info(c_int, *mut ProcessMemory, *mut c_int);
    dcmiv2_subscribe_fault_event(c_int, EventFilter, EventCallback);
}

impl Symbols {
    /// Loads the library for the life of this process.
    pub(super) fn load(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: the library's initialisers are the vendor's; the path passed the ownership checks
        // or was named as trusted by the operator, and the process exists to run this code.
        let opened = unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_GLOBAL) };
        match opened {
            Ok(library) => Ok(Self::resolve(library)),
            Err(error) => Err(LoadError {
                path: path.to_path_buf(),
                // The loader's first message says nothing; the reason is in its sources.
                cause: with_causes(&error),
            }),
        }
    }

    /// Names of the functions the library lacks.
    pub(super) fn missing(&self) -> &[&'static str] {
        &self.missing
    }
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbols")
            .field("missing", &self.missing)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_named_with_the_loaders_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("libdcmi.so");
        std::fs::write(&path, "not an object").unwrap();
        let error = Symbols::load(&path).unwrap_err();
        assert_eq!(error.path, path);
        assert!(error.cause.contains("libdcmi.so: "), "{}", error.cause);
    }
}
