//! Compiles the protocol descriptions in pure Rust, so that no system protoc is needed. Each API gets
//! a folder of its own: pod-resources and other kubelet APIs share the package name `v1`.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out_dir = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    for api in ["deviceplugin/v1beta1", "podresources/v1", "admin/v1"] {
        let include = Path::new("proto").join(api);
        let descriptors = protox::compile([include.join("api.proto")], [&include])?;
        let target = out_dir.join(api.replace('/', "_"));
        std::fs::create_dir_all(&target)?;
        tonic_prost_build::configure()
            .out_dir(&target)
            .compile_fds(descriptors)?;
    }
    Ok(())
}
