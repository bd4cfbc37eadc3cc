//! The whole agent on a simulated node, under the real kubelet device manager. Every test has a node
//! of its own and asserts only what people and programs can see: kubelet's view, the status, the
//! history, files, exit codes and the simulator's counters. The names carry the rules they prove:
//! `l` the ledger's, `c` kubelet's contract, `ff` failures seen in the field.

#[cfg(test)]
#[path = "node/allocate.rs"]
mod allocate;
#[cfg(test)]
#[path = "node/cdi.rs"]
mod cdi;
#[cfg(test)]
#[path = "node/commands.rs"]
mod commands;
#[cfg(test)]
#[path = "node/delivery.rs"]
mod delivery;
#[cfg(test)]
#[path = "node/dies.rs"]
mod dies;
#[cfg(test)]
#[path = "node/doctor.rs"]
mod doctor;
#[cfg(test)]
#[path = "node/driver.rs"]
mod driver;
#[cfg(test)]
#[path = "node/health.rs"]
mod health;
#[cfg(test)]
#[path = "node/holders.rs"]
mod holders;
#[cfg(test)]
#[path = "../src/cli/demo/kubelet.rs"]
mod kubelet;
#[cfg(test)]
#[path = "node/lists.rs"]
mod lists;
#[cfg(test)]
#[path = "node/manifests.rs"]
mod manifests;
#[cfg(test)]
#[path = "node/modes.rs"]
mod modes;
#[cfg(test)]
#[path = "node/numbers.rs"]
mod numbers;
#[cfg(test)]
#[path = "node/plugin.rs"]
mod plugin;
#[cfg(test)]
#[path = "node/pod.rs"]
mod pod;
#[cfg(test)]
#[path = "node/products.rs"]
mod products;
#[cfg(test)]
#[path = "node/profiles.rs"]
mod profiles;
#[cfg(test)]
#[path = "node/registration.rs"]
mod registration;
#[cfg(test)]
#[path = "node/relay.rs"]
mod relay;
#[cfg(test)]
#[path = "node/restarts.rs"]
mod restarts;
#[cfg(test)]
#[path = "node/several.rs"]
mod several;
#[cfg(test)]
#[path = "../src/cli/demo/stage.rs"]
mod stage;
#[cfg(test)]
#[path = "node/stopping.rs"]
mod stopping;
#[cfg(test)]
#[path = "node/testbed.rs"]
mod testbed;
