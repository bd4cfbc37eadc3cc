//! What stands in `deploy/` starts the program, and mounts what it needs.

#[cfg(test)]
#[path = "deploy/files.rs"]
mod files;
