//! The durable record against failing disks, damaged files, rival processes and full file systems.
//! One binary, because its parts share the simulated media.

#[path = "store_suite/damage.rs"]
mod damage;
#[path = "store_suite/fixtures.rs"]
mod fixtures;
#[path = "store_suite/golden.rs"]
mod golden;
#[path = "store_suite/media.rs"]
mod media;
#[path = "store_suite/offline.rs"]
mod offline;
#[path = "store_suite/places.rs"]
mod places;
#[path = "store_suite/processes.rs"]
mod processes;
#[path = "store_suite/records.rs"]
mod records;
#[path = "store_suite/running.rs"]
mod running;
#[path = "store_suite/storage_faults.rs"]
mod storage_faults;
