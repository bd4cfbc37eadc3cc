//! The driver host: the child process that alone loads the vendor library, and its client.

pub mod host;
