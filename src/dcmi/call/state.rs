//! How a chip is, and the events that tell of a change.

use std::os::raw::{c_int, c_uint};

use super::{Address, Dcmi, returned, taken};
use crate::dcmi::code::CallError;
use crate::dcmi::layout::{EventFilter, ProcessMemory};
use crate::dcmi::subscription;
use crate::domain::chip::{DcmiApi, DiePolicy};
use crate::domain::fault::{FaultCode, HealthLevel};

/// What the library itself begins with.
const HEALTH_UNKNOWN: c_uint = 4;

/// Error codes one call can return.
const CODE_CAPACITY: usize = 128;

/// The call has no length argument; drivers write 64 entries where the manual says 32.
const PROCESS_CAPACITY: usize = 128;

impl Dcmi {
    /// Health of a chip.
    ///
    /// # Errors
    /// The call failed; "not ready" means that the card is gone.
    pub fn health(&self, at: Address) -> Result<HealthLevel, CallError> {
        // A call that succeeds and writes nothing must not read as good health.
        let mut health: c_uint = HEALTH_UNKNOWN;
        match at {
            Address::Card { card, device } => {
                call!(self.dcmi_get_device_health(card.0, device.0, &raw mut health))?;
            }
            Address::Logic { device } => {
                call!(self.dcmiv2_get_device_health(device, &raw mut health))?;
            }
        }
        Ok(HealthLevel::from(health))
    }

    /// Active fault codes of a chip.
    ///
    /// # Errors
    /// The call failed, which it does with -8005 for a card that is gone.
    pub fn fault_codes(&self, at: Address) -> Result<Vec<FaultCode>, CallError> {
        let mut codes = [0_u32; CODE_CAPACITY];
        let mut count: c_int = 0;
        let capacity = CODE_CAPACITY.try_into().unwrap_or(u32::MAX);
        let symbol = match at {
            Address::Card { card, device } => {
                call!(self.dcmi_get_device_errorcode_v2(
                    card.0,
                    device.0,
                    &raw mut count,
                    codes.as_mut_ptr(),
                    capacity,
                ))?;
                "dcmi_get_device_errorcode_v2"
            }
            Address::Logic { device } => {
                call!(self.dcmiv2_get_device_error_code_list(
                    device,
                    &raw mut count,
                    codes.as_mut_ptr(),
                    capacity,
                ))?;
                "dcmiv2_get_device_error_code_list"
            }
        };
        Ok(taken(symbol, "number of codes", count, &codes)?
            .into_iter()
            .map(FaultCode)
            .collect())
    }

    /// Host pids of the processes on a chip.
    ///
    /// # Errors
    /// The call failed.
    pub fn processes(&self, at: Address) -> Result<Vec<u32>, CallError> {
        let mut entries = [ProcessMemory::default(); PROCESS_CAPACITY];
        let mut count: c_int = 0;
        let symbol = match at {
            Address::Card { card, device } => {
                call!(self.dcmi_get_device_resource_info(
                    card.0,
                    device.0,
                    entries.as_mut_ptr(),
                    &raw mut count,
                ))?;
                "dcmi_get_device_resource_info"
            }
            Address::Logic { device } => {
                call!(self.dcmiv2_get_device_proc_mem_info(
                    device,
                    entries.as_mut_ptr(),
                    &raw mut count,
                ))?;
                "dcmiv2_get_device_proc_mem_info"
            }
        };
        let entries = taken(symbol, "number of processes", count, &entries)?;
        Ok(entries
            .iter()
            .filter_map(|entry| u32::try_from(entry.pid).ok())
            .collect())
    }

    /// Sets how the dies of every A3 card are treated, and reads it back; needs root on the host or
    /// in a privileged container.
    ///
    /// # Errors
    /// A call failed, or the driver keeps another policy all the same.
    pub fn set_die_policy(&self, policy: DiePolicy) -> Result<(), CallError> {
        let wanted: c_uint = match policy {
            DiePolicy::Union => 0,
            DiePolicy::Independent => 1,
        };
        call!(self.dcmi_set_multi_die_policy(wanted))?;
        let mut found: c_uint = c_uint::MAX;
        call!(self.dcmi_get_multi_die_policy(&raw mut found))?;
        if found == wanted {
            return Ok(());
        }
        Err(CallError::Implausible {
            symbol: "dcmi_get_multi_die_policy",
            what: "policy after another was set",
            value: found.into(),
        })
    }

    /// Subscribes to the events of all chips, once per process: after a first failure the library
    /// answers every further try with -8020, so there is no sense in one.
    ///
    /// # Errors
    /// The driver refused.
    pub(in crate::dcmi) fn subscribe(&self, api: DcmiApi) -> Result<(), CallError> {
        let filter = EventFilter::default();
        match api {
            DcmiApi::V1 => {
                call!(self.dcmi_subscribe_fault_event(-1, -1, filter, subscription::on_event))
            }
            DcmiApi::V2 => {
                call!(self.dcmiv2_subscribe_fault_event(-1, filter, subscription::on_event))
            }
        }
    }
}
