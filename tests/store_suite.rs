//! The durable record against failing disks, damaged files, rival processes and full file systems.
//! One binary, because its parts share the simulated media.

#[cfg(test)]
#[path = "store_suite/damage.rs"]
mod damage;
#[cfg(test)]
#[path = "store_suite/fixtures.rs"]
mod fixtures;
#[cfg(test)]
#[path = "store_suite/golden.rs"]
mod golden;
#[cfg(test)]
#[path = "store_suite/media.rs"]
mod media;
#[cfg(test)]
#[path = "store_suite/offline.rs"]
mod offline;
#[cfg(test)]
#[path = "store_suite/places.rs"]
mod places;
#[cfg(test)]
#[path = "store_suite/processes.rs"]
mod processes;
#[cfg(test)]
#[path = "store_suite/records.rs"]
mod records;
#[cfg(test)]
#[path = "store_suite/running.rs"]
mod running;
#[cfg(test)]
#[path = "store_suite/storage_faults.rs"]
mod storage_faults;
