//! The few sysfs files a driver user reads: NUMA node of a PCI device, CPUs of a node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot change {path:?}")]
pub(crate) struct SysfsError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

#[derive(Debug)]
pub(super) struct SysfsDir {
    root: PathBuf,
    made: BTreeSet<PathBuf>,
}

impl SysfsDir {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            made: BTreeSet::new(),
        }
    }

    pub(super) fn show(
        &mut self,
        devices: &[(String, u32)],
        numa_cpus: &[String],
    ) -> Result<(), SysfsError> {
        let mut wanted = BTreeSet::new();
        for (address, node) in devices {
            let path = self
                .root
                .join("bus/pci/devices")
                .join(address)
                .join("numa_node");
            write(&path, &format!("{node}\n"))?;
            wanted.insert(path);
        }
        for (node, cpus) in numa_cpus.iter().enumerate() {
            let path = self
                .root
                .join(format!("devices/system/node/node{node}/cpulist"));
            write(&path, &format!("{cpus}\n"))?;
            wanted.insert(path);
        }
        for path in self.made.difference(&wanted) {
            remove(path);
        }
        self.made = wanted;
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        for path in std::mem::take(&mut self.made) {
            remove(&path);
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), SysfsError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, text))
        .map_err(|source| SysfsError {
            path: path.to_path_buf(),
            source,
        })
}

/// What is left behind is overwritten at the next start.
fn remove(path: &Path) {
    let _file: io::Result<()> = fs::remove_file(path);
    if let Some(parent) = path.parent() {
        let _dir: io::Result<()> = fs::remove_dir(parent);
    }
}
