//! Looks at what the container or host gives the agent. A handful of small reads; the judgement over
//! them is `footing`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::dcmi::search::{self, Search};
use crate::footing::{self, FOLDER_BESIDE_SOCKETS, Facts, Mounts, StatePlace};

/// Number of the first process namespace, the host's, fixed in the kernel.
const HOST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The store's file, which marks a state folder that is in use.
const STATE_FILE: &str = "state.redb";

/// Folders of the driver's libraries below its root, in the order in which they are searched.
const LIBRARY_FOLDERS: [&str; 3] = ["lib64", "lib64/driver", "lib64/common"];

/// Where the driver is installed.
pub const DRIVER_ROOT: &str = "/usr/local/Ascend/driver";

/// What the look needs to know of the configuration.
#[derive(Clone, Debug)]
pub struct Places {
    /// State folder in use.
    pub state_dir: Option<PathBuf>,
    /// Kubelet's folder of plugin sockets.
    pub device_plugin_dir: PathBuf,
    /// Kubelet's pod-resources socket.
    pub pod_resources_socket: PathBuf,
    /// Folder of the device nodes.
    pub dev_dir: PathBuf,
    /// Search path of the driver library.
    pub ld_library_path: Option<String>,
    /// Library that is taken without a search.
    pub trusted_library: Option<PathBuf>,
    /// Whether Kubernetes set its variables.
    pub in_pod: bool,
}

/// Looks at everything. Reads files and may run `ldconfig`: not for an async thread.
#[must_use]
pub fn look(places: &Places) -> Facts {
    let mounts = mounts();
    let in_container = footing::is_container(&mounts, places.in_pod);
    let search = Search::of_system(
        places.ld_library_path.clone(),
        places.trusted_library.clone(),
    );
    let socket = &places.pod_resources_socket;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    Facts {
        in_container,
        state: state_place(places, &mounts, in_container),
        library_trouble: search::find(&search).err().map(|error| error.to_string()),
        missing_pod_resources: (!socket.parent().is_some_and(Path::is_dir)).then(|| socket.clone()),
        host_pids: fs::read_link("/proc/self/ns/pid")
            .is_ok_and(|link| link == Path::new(HOST_PID_NAMESPACE)),
        root: fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0),
        capabilities: effective_capabilities(&status),
        host_dev: mounts
            .of(&resolved(&places.dev_dir))
            .is_some_and(|mount| mount.kind == "devtmpfs"),
    }
}

/// The folder for the state when nobody chose one: beside kubelet's sockets if `default` would not
/// outlive this container. A store that is in one of the two folders already stays in use, one at the
/// default first.
#[must_use]
pub fn lasting_state_dir(default: &Path, device_plugin_dir: &Path, in_pod: bool) -> PathBuf {
    let mounts = mounts();
    let in_container = footing::is_container(&mounts, in_pod);
    state_dir_among(&mounts, default, device_plugin_dir, in_container)
}

fn state_dir_among(
    mounts: &Mounts,
    default: &Path,
    device_plugin_dir: &Path,
    in_container: bool,
) -> PathBuf {
    let beside = device_plugin_dir.join(FOLDER_BESIDE_SOCKETS);
    let is_used = |dir: &Path| dir.join(STATE_FILE).exists();
    if is_used(default) {
        return default.to_owned();
    }
    // A volume that is added later, or a start outside of the container, must meet the store and its
    // lock where they are: two stores would be two truths about one chip.
    if is_used(&beside) {
        return beside;
    }
    if footing::outlives(&resolved(default), mounts, in_container) || !device_plugin_dir.is_dir() {
        return default.to_owned();
    }
    beside
}

/// Whether nothing can be created at this path.
#[must_use]
pub fn is_read_only(path: &Path) -> bool {
    mounts()
        .of(&resolved(path))
        .is_some_and(|mount| mount.read_only)
}

/// The folder of the lock that every driver host of this node takes: all who start one must name the
/// same, so that no two use the driver at once.
#[must_use]
pub fn driver_lock_dir(state_dir: Option<&Path>, admin_socket: &Path) -> PathBuf {
    let candidates = [state_dir, admin_socket.parent()];
    let first = candidates.into_iter().flatten().find(|dir| dir.is_dir());
    first.unwrap_or(Path::new("/run")).to_owned()
}

/// The folders of the driver's libraries that are there, as a search path.
#[must_use]
pub fn usual_library_path(driver_root: &Path) -> Option<String> {
    let folders: Vec<String> = LIBRARY_FOLDERS
        .iter()
        .map(|folder| driver_root.join(folder))
        .filter(|folder| folder.is_dir())
        .map(|folder| folder.display().to_string())
        .collect();
    (!folders.is_empty()).then(|| folders.join(":"))
}

fn state_place(places: &Places, mounts: &Mounts, in_container: bool) -> StatePlace {
    match &places.state_dir {
        None => StatePlace::Nowhere,
        Some(dir) if *dir == places.device_plugin_dir.join(FOLDER_BESIDE_SOCKETS) => {
            StatePlace::BesideSockets
        }
        Some(dir) if footing::outlives(&resolved(dir), mounts, in_container) => {
            StatePlace::Configured
        }
        Some(_) => StatePlace::InContainer,
    }
}

fn mounts() -> Mounts {
    mounts_in(Path::new("/proc/self/mountinfo"))
}

/// The mounts that a file of the kernel lists. Where it cannot be read nothing is known, and everything
/// is taken as configured; a mount point that is no UTF-8 text must not cost the others.
#[must_use]
pub fn mounts_in(file: &Path) -> Mounts {
    let table = fs::read(file).unwrap_or_default();
    Mounts::parse(&String::from_utf8_lossy(&table))
}

/// The nearest part of a path that is there, links resolved.
fn resolved(path: &Path) -> PathBuf {
    let there = path
        .ancestors()
        .find_map(|part| fs::canonicalize(part).ok());
    there.unwrap_or_else(|| path.to_owned())
}

fn effective_capabilities(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_kernels_status() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000001ffffffffff\n";
        assert_eq!(effective_capabilities(status), 0x1ff_ffff_ffff);
        assert_eq!(effective_capabilities(""), 0);
    }

    #[test]
    fn a_state_folder_without_a_volume_moves_beside_the_sockets_unless_it_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let (default, sockets) = (dir.path().join("state"), dir.path().join("dp"));
        let table = Mounts::parse("1 0 0:30 / / rw - overlay overlay rw\n");
        let chosen = |in_container| state_dir_among(&table, &default, &sockets, in_container);
        assert_eq!(chosen(true), default, "there is no other folder");
        fs::create_dir(&sockets).unwrap();
        assert_eq!(chosen(true), sockets.join("ascend-agent"));
        assert_eq!(chosen(false), default);
        fs::create_dir(&default).unwrap();
        fs::write(default.join(STATE_FILE), "").unwrap();
        assert_eq!(chosen(true), default, "it is in use");
    }

    #[test]
    fn a_store_beside_the_sockets_stays_in_use_when_a_volume_is_added() {
        let dir = tempfile::tempdir().unwrap();
        let (default, sockets) = (dir.path().join("state"), dir.path().join("dp"));
        let beside = sockets.join("ascend-agent");
        fs::create_dir_all(&beside).unwrap();
        fs::write(beside.join(STATE_FILE), "").unwrap();
        let volume = format!(
            "1 0 0:30 / / rw - overlay overlay rw\n2 1 8:1 /x {} rw - ext4 /dev/sda1 rw\n",
            fs::canonicalize(dir.path()).unwrap().display()
        );
        let chosen = |table: &str, in_container| {
            state_dir_among(&Mounts::parse(table), &default, &sockets, in_container)
        };
        assert_eq!(chosen(&volume, true), beside);
        assert_eq!(
            chosen("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n", false),
            beside
        );
        fs::create_dir(&default).unwrap();
        fs::write(default.join(STATE_FILE), "").unwrap();
        assert_eq!(chosen(&volume, true), default, "the store was moved there");
    }

    #[test]
    fn a_mount_whose_name_is_no_text_does_not_hide_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mountinfo");
        let mut table = b"1 0 0:30 / / ro - overlay overlay rw\n2 1 8:1 / /mnt/caf".to_vec();
        table.extend(b"\xe9 rw - ext4 /dev/sda1 rw\n");
        fs::write(&file, table).unwrap();
        let mounts = mounts_in(&file);
        assert!(mounts.of(Path::new("/var/lib/ascend")).unwrap().read_only);
    }

    #[test]
    fn the_usual_library_folders_count_when_they_are_there() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(usual_library_path(dir.path()), None);
        fs::create_dir_all(dir.path().join("lib64/driver")).unwrap();
        let root = dir.path().display();
        assert_eq!(
            usual_library_path(dir.path()).unwrap(),
            format!("{root}/lib64:{root}/lib64/driver")
        );
    }
}
