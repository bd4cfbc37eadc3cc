//! `ascend-agent`: the node agent for Huawei Ascend NPUs on Kubernetes.
//!
//! One process per node takes the place of the vendor's device plugin and adds a durable ledger of
//! who holds which chip. The rooms and what each may import stand in `ARCHITECTURE.md`; a test holds
//! the code to that table.

pub mod admin;
pub mod agent;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dcmi;
pub mod doctor;
pub mod domain;
pub mod driver;
pub mod files;
pub mod footing;
pub mod health;
pub mod health_http;
pub mod injection;
pub mod kubelet;
pub mod ledger;
pub mod offering;
pub mod ports;
pub mod store;
pub mod surroundings;
pub mod telemetry;
pub mod topology;
