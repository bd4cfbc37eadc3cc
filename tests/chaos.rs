//! The whole agent under attack: kills, full disks, damaged files, hung drivers, nonsense on its
//! sockets. Every test has a node of its own: simulated hardware, the real kubelet device manager.
//!
//! `ASCEND_TEST_CHURN_ROUNDS` sets the length of the churn (200; 2000 for a soak) and
//! `ASCEND_TEST_SEED` its course; the seed stands in every failure.

#[cfg(test)]
#[path = "chaos/churn.rs"]
mod churn;
#[cfg(test)]
#[path = "chaos/crash_points.rs"]
mod crash_points;
#[cfg(test)]
#[path = "chaos/disk.rs"]
mod disk;
#[cfg(test)]
#[path = "chaos/driver.rs"]
mod driver;
#[cfg(test)]
#[path = "../src/cli/demo/kubelet.rs"]
mod kubelet;
#[cfg(test)]
#[path = "chaos/node.rs"]
mod node;
#[cfg(test)]
#[path = "chaos/requests.rs"]
mod requests;
#[cfg(test)]
#[path = "chaos/seed.rs"]
mod seed;
#[cfg(test)]
#[path = "../src/cli/demo/stage.rs"]
mod stage;
#[cfg(test)]
#[path = "chaos/state_files.rs"]
mod state_files;
