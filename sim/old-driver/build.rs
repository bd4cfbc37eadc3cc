//! Builds the shared source as the library of an old driver.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=old_driver");
}
