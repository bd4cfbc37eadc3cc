//! What a container or a host must give the agent, and what each missing piece costs.
//!
//! Pure judgement over facts that somebody else collects, so that the start and every command say the
//! same. Nothing here stops the agent: a manifest made for another program must start it unchanged.

mod mounts;

use std::path::{Path, PathBuf};

pub use mounts::{Mount, Mounts};

/// Folder for state and admin socket below kubelet's folder of plugin sockets. Kubelet empties that
/// folder when it starts, and leaves folders in it alone.
pub const FOLDER_BESIDE_SOCKETS: &str = "ascend-agent";

/// The capability that only a privileged container has among those that matter (`CAP_SYS_ADMIN`).
const SYS_ADMIN: u32 = 21;

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Facts {
    /// Whether this process runs in a container.
    pub in_container: bool,
    /// Whether the durable state outlives this container.
    pub state: StatePlace,
    /// Why no driver library can be loaded; `None` when one can.
    pub library_trouble: Option<String>,
    /// Kubelet's pod-resources socket, when its folder is not there.
    pub missing_pod_resources: Option<PathBuf>,
    /// Whether process numbers are those of the host.
    pub host_pids: bool,
    /// Whether this process is root.
    pub root: bool,
    /// Effective capabilities as a bit set.
    pub capabilities: u64,
    /// Whether the folder of device nodes is the host's and not a copy of some moment.
    pub host_dev: bool,
}

/// Where the durable state lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatePlace {
    /// Where it was configured.
    Configured,
    /// Nowhere, as configured.
    Nowhere,
    /// In [`FOLDER_BESIDE_SOCKETS`], for want of a volume.
    BesideSockets,
    /// In the container's own file system, for want of anything else.
    InContainer,
}

/// One missing piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What is missing.
    pub lack: &'static str,
    /// What it costs.
    pub consequence: String,
    /// What to add: lines of YAML for a container, a sentence for a host.
    pub remedy: &'static str,
}

/// Judges, in the order in which one would mend.
#[must_use]
pub fn lacks(facts: &Facts) -> Vec<Lack> {
    let mut lacks = Vec::new();
    let mut add = |lack, consequence: &str, in_container, on_host| {
        lacks.push(Lack {
            lack,
            consequence: consequence.to_owned(),
            remedy: if facts.in_container {
                in_container
            } else {
                on_host
            },
        });
    };
    if let Some(trouble) = &facts.library_trouble {
        add(
            "the driver",
            &format!("no chip can be read: {trouble}"),
            "volumeMounts: [{ name: driver, mountPath: /usr/local/Ascend/driver, readOnly: true }], \
             volumes: [{ name: driver, hostPath: { path: /usr/local/Ascend/driver } }]",
            "install the driver, or set LD_LIBRARY_PATH to the folders of its libraries",
        );
    }
    match facts.state {
        StatePlace::Configured | StatePlace::Nowhere => {}
        StatePlace::BesideSockets => add(
            "a volume for the state",
            "it is kept in kubelet's folder of plugin sockets, which is lost with kubelet's own state; \
             once there is a volume, move the files to it while no agent runs",
            STATE_VOLUME,
            "set state_dir to a folder that can be written",
        ),
        StatePlace::InContainer => add(
            "a volume for the state",
            "every restart of the container forgets who holds which chip and asks kubelet",
            STATE_VOLUME,
            "set state_dir to a folder that outlives the agent",
        ),
    }
    if let Some(socket) = &facts.missing_pod_resources {
        add(
            "kubelet's pod-resources socket",
            &format!(
                "{} cannot be there: a chip that kubelet grants twice goes unnoticed",
                socket.display()
            ),
            "volumeMounts: [{ name: pod-resources, mountPath: /var/lib/kubelet/pod-resources }], \
             volumes: [{ name: pod-resources, hostPath: { path: /var/lib/kubelet/pod-resources } }]",
            "set pod_resources_socket to kubelet's socket",
        );
    }
    if !facts.root || (facts.in_container && !has_sys_admin(facts.capabilities)) {
        add(
            "rights",
            "kubelet's folders and the chips' device nodes need root in a privileged container",
            "securityContext: { privileged: true, runAsUser: 0 }",
            "run the agent as root",
        );
    }
    if facts.in_container && !facts.host_pids {
        add(
            "the host's process numbers",
            "the driver's numbers of processes on a chip mean nothing here",
            "hostPID: true",
            "",
        );
    }
    if facts.in_container && !facts.host_dev {
        add(
            "the host's /dev",
            "the container's own is a copy: chips that come up later stay invisible",
            "volumeMounts: [{ name: dev, mountPath: /dev }], \
             volumes: [{ name: dev, hostPath: { path: /dev } }]",
            "",
        );
    }
    lacks
}

const STATE_VOLUME: &str = "volumeMounts: [{ name: state, mountPath: /var/lib/ascend }], \
     volumes: [{ name: state, hostPath: { path: /var/lib/ascend, type: DirectoryOrCreate } }]";

fn has_sys_admin(capabilities: u64) -> bool {
    capabilities >> SYS_ADMIN & 1 == 1
}

/// Whether this is a container: its root is a stack of layers, or Kubernetes says so.
#[must_use]
pub fn is_container(mounts: &Mounts, in_pod: bool) -> bool {
    in_pod
        || mounts
            .of(Path::new("/"))
            .is_some_and(|root| root.kind == "overlay")
}

/// Whether something written to `path` is there for the next container or the next boot. `path` must
/// be free of links.
#[must_use]
pub fn outlives(path: &Path, mounts: &Mounts, in_container: bool) -> bool {
    mounts.of(path).is_none_or(|mount| {
        let own_root = in_container && mount.point == Path::new("/");
        !own_root && !mount.read_only
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A container with everything.
    fn complete() -> Facts {
        Facts {
            in_container: true,
            state: StatePlace::Configured,
            library_trouble: None,
            missing_pod_resources: None,
            host_pids: true,
            root: true,
            capabilities: u64::MAX,
            host_dev: true,
        }
    }

    fn named(facts: &Facts) -> Vec<&'static str> {
        lacks(facts).iter().map(|lack| lack.lack).collect()
    }

    #[test]
    fn a_complete_container_lacks_nothing() {
        assert_eq!(lacks(&complete()), []);
    }

    #[test]
    fn each_missing_piece_is_named_with_the_lines_to_add() {
        for (facts, lack, remedy) in [
            (
                Facts {
                    library_trouble: Some("not found".to_owned()),
                    ..complete()
                },
                "the driver",
                "/usr/local/Ascend/driver",
            ),
            (
                Facts {
                    state: StatePlace::BesideSockets,
                    ..complete()
                },
                "a volume for the state",
                "/var/lib/ascend",
            ),
            (
                Facts {
                    state: StatePlace::InContainer,
                    ..complete()
                },
                "a volume for the state",
                "/var/lib/ascend",
            ),
            (
                Facts {
                    missing_pod_resources: Some("/p/kubelet.sock".into()),
                    ..complete()
                },
                "kubelet's pod-resources socket",
                "/var/lib/kubelet/pod-resources",
            ),
            (
                Facts {
                    root: false,
                    ..complete()
                },
                "rights",
                "privileged: true",
            ),
            (
                Facts {
                    capabilities: 0xa804_25fb,
                    ..complete()
                },
                "rights",
                "privileged: true",
            ),
            (
                Facts {
                    host_pids: false,
                    ..complete()
                },
                "the host's process numbers",
                "hostPID: true",
            ),
            (
                Facts {
                    host_dev: false,
                    ..complete()
                },
                "the host's /dev",
                "mountPath: /dev",
            ),
        ] {
            let found = lacks(&facts);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].lack, lack);
            assert!(found[0].remedy.contains(remedy), "{found:?}");
        }
    }

    #[test]
    fn a_host_needs_neither_capabilities_nor_its_own_numbers_and_nodes() {
        let host = Facts {
            in_container: false,
            capabilities: 0,
            host_pids: false,
            host_dev: false,
            ..complete()
        };
        assert_eq!(named(&host), [""; 0]);
        let found = lacks(&Facts {
            root: false,
            ..host
        });
        assert_eq!(found[0].remedy, "run the agent as root");
    }

    #[test]
    fn only_a_containers_own_root_and_what_is_read_only_forget() {
        let mounts = Mounts::parse(
            "1 0 0:30 / / ro,relatime - overlay overlay rw\n\
             2 1 8:1 /kubelet/dp /var/lib/kubelet/device-plugins rw - ext4 /dev/sda1 rw\n\
             3 1 8:1 /ro /ro ro - ext4 /dev/sda1 rw\n",
        );
        let state = Path::new("/var/lib/ascend");
        assert!(is_container(&mounts, false));
        assert!(!outlives(state, &mounts, true));
        assert!(outlives(
            Path::new("/var/lib/kubelet/device-plugins"),
            &mounts,
            true
        ));
        assert!(!outlives(Path::new("/ro/x"), &mounts, true));
        let host = Mounts::parse("1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n");
        assert!(!is_container(&host, false) && is_container(&host, true));
        assert!(outlives(state, &host, false));
        assert!(!outlives(state, &host, true));
    }
}
