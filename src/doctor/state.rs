//! The state folder: does it outlast the container, is there room, can the store be read.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::footing::{Mount, Mounts, outlives};
use crate::store::{OpenError, check};

use super::finding::Finding;
use super::running::Agent;

pub(super) const WHAT: &str = "state volume";

pub(super) const STORE_WHAT: &str = "store";

/// A full history takes about 106 MB, twice that for a while, and a check copies it.
const COMFORTABLE_BYTES: u64 = 512 << 20;

/// Below this a new store grants little before the disk is full.
const NEEDED_BYTES: u64 = 16 << 20;

/// Permissions of others that the agent takes away.
const OTHERS: u32 = 0o077;

/// The place of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    folder: PathBuf,
    /// Owner and mode, when the folder is there.
    owner_and_mode: Option<(u32, u32)>,
    mount: Option<Mount>,
    free_bytes: Option<u64>,
    is_read_only: bool,
    /// Whether it is still there for the next container.
    outlives: bool,
    /// Whether it lies in kubelet's folder of sockets, for want of a volume.
    is_beside_sockets: bool,
}

/// `None` without a state folder.
pub(super) fn look(
    folder: Option<&Path>,
    beside_sockets: &Path,
    mounts: &Mounts,
    in_container: bool,
) -> Option<Place> {
    let folder = folder?;
    // Before the first start the folder is not there; what it will be made in counts.
    let above = folder.ancestors().find(|path| path.exists());
    let above = above.unwrap_or(Path::new("/"));
    let resolved = fs::canonicalize(above).unwrap_or_else(|_| above.to_path_buf());
    let system = statvfs(above).ok();
    let mount = mounts.of(&resolved).cloned();
    let frozen = mount.as_ref().is_some_and(|mount| mount.read_only);
    Some(Place {
        folder: folder.to_path_buf(),
        owner_and_mode: fs::metadata(folder)
            .ok()
            .map(|found| (found.uid(), found.mode() & 0o7777)),
        // What is read-only is told on its own.
        outlives: frozen || outlives(&resolved, mounts, in_container),
        is_beside_sockets: folder == beside_sockets,
        mount,
        free_bytes: system
            .as_ref()
            .map(|system| system.f_bavail.saturating_mul(system.f_frsize)),
        is_read_only: system
            .is_some_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY)),
    })
}

pub(super) fn judge(place: Option<&Place>) -> Finding {
    let Some(place) = place else {
        return Finding::warn(
            WHAT,
            "state_dir is none: nothing is kept across restarts",
            "set state_dir to a folder of the host",
        );
    };
    let folder = place.folder.display();
    let free = place.free_bytes.map_or_else(
        || "unknown room".to_owned(),
        |bytes| format!("{} MiB free", bytes >> 20),
    );
    let kind = place
        .mount
        .as_ref()
        .map_or("an unknown file system", |mount| &mount.kind);
    let found = format!("{folder} on {kind}, {free}");
    if !place.outlives {
        return Finding::fail(
            WHAT,
            format!("{folder} lies in the container's own layer, which ends with the container"),
            "mount a folder of the host there (hostPath, type DirectoryOrCreate)",
        );
    }
    if place.is_read_only {
        return Finding::fail(
            WHAT,
            format!("{found}, read-only"),
            "mount it writable; until then nothing is granted",
        );
    }
    if place.free_bytes.is_some_and(|bytes| bytes < NEEDED_BYTES) {
        return Finding::fail(WHAT, found, "make room; on a full disk nothing is granted");
    }
    if let Some((owner, _)) = place.owner_and_mode.filter(|(owner, _)| *owner != 0) {
        return Finding::fail(
            WHAT,
            format!("{folder} belongs to user {owner}"),
            format!("run `chown root {folder}`; the agent takes only a folder of its own user"),
        );
    }
    if matches!(kind, "tmpfs" | "ramfs") {
        return Finding::warn(
            WHAT,
            format!("{found}: gone after the next boot"),
            "use a folder on a disk",
        );
    }
    if place
        .free_bytes
        .is_some_and(|bytes| bytes < COMFORTABLE_BYTES)
    {
        let wanted = COMFORTABLE_BYTES >> 20;
        return Finding::warn(
            WHAT,
            found,
            format!("keep {wanted} MiB free for a full history"),
        );
    }
    if place.is_beside_sockets {
        return Finding::warn(
            WHAT,
            format!("{found}: kubelet's folder of sockets, for want of a volume"),
            "mount a folder of the host at /var/lib/ascend and move the files there while no agent runs; \
             this one is lost with kubelet's own state",
        );
    }
    match place.owner_and_mode {
        None => Finding::ok(WHAT, format!("{found}; the first start makes the folder")),
        Some((_, mode)) if mode & OTHERS != 0 => Finding::ok(
            WHAT,
            format!("{found}; mode {mode:04o}, the next start closes it to others"),
        ),
        Some(_) => Finding::ok(WHAT, found),
    }
}

/// What the store is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// State of the running agent's store, and its trouble.
    Agent { state: String, trouble: String },
    /// No store is wanted.
    Unwanted,
    /// There is none yet.
    Missing,
    /// It was read: chips held, records of the history.
    Read { allocations: u64, history: u64 },
    /// It is damaged.
    Damaged(String),
    /// It cannot be read now.
    Unread(String),
}

pub(super) fn look_into(folder: Option<&Path>, agent: &Agent) -> Content {
    if let Some(status) = agent.status() {
        return Content::Agent {
            state: status.store.state.clone(),
            trouble: status.store.trouble.clone(),
        };
    }
    let Some(folder) = folder else {
        return Content::Unwanted;
    };
    match check(folder) {
        Ok(report) if report.is_clean() => Content::Read {
            allocations: report.allocations,
            history: report.history,
        },
        Ok(report) => Content::Damaged(report.damage.unwrap_or_else(|| {
            format!("{} damaged history records", report.damaged_history.len())
        })),
        Err(OpenError::Missing { .. }) => Content::Missing,
        Err(error) => Content::Unread(error.to_string()),
    }
}

pub(super) fn judge_store(content: &Content) -> Finding {
    match content {
        Content::Agent { state, .. } if state == "durable" => {
            Finding::ok(STORE_WHAT, "the running agent's store is durable")
        }
        Content::Agent { state, .. } if state == "none" => Finding::warn(
            STORE_WHAT,
            "the running agent has none",
            "mend the state volume and restart the agent",
        ),
        Content::Agent { state, trouble } => Finding::fail(
            STORE_WHAT,
            format!("the running agent says {state}: {trouble}"),
            "mend the state volume; the agent opens its store again by itself",
        ),
        Content::Unwanted => Finding::ok(STORE_WHAT, "none is wanted"),
        Content::Missing => Finding::ok(STORE_WHAT, "none yet; the first start makes it"),
        Content::Read {
            allocations,
            history,
        } => Finding::ok(
            STORE_WHAT,
            format!("read whole: {allocations} chips held, {history} history records"),
        ),
        Content::Damaged(cause) => Finding::fail(
            STORE_WHAT,
            cause.clone(),
            "keep a copy; the next start sets it aside and adopts the holders from kubelet",
        ),
        Content::Unread(cause) => Finding::fail(
            STORE_WHAT,
            cause.clone(),
            "stop what has it open, or give doctor the configuration of the agent that has",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn place() -> Place {
        Place {
            folder: PathBuf::from("/var/lib/ascend"),
            owner_and_mode: Some((0, 0o700)),
            mount: Some(Mount {
                point: PathBuf::from("/var/lib/ascend"),
                kind: "ext4".to_owned(),
                read_only: false,
            }),
            free_bytes: Some(10 << 30),
            is_read_only: false,
            outlives: true,
            is_beside_sockets: false,
        }
    }

    fn verdict(change: impl FnOnce(&mut Place)) -> Verdict {
        let mut place = place();
        change(&mut place);
        judge(Some(&place)).verdict
    }

    #[test]
    fn a_folder_on_a_disk_with_room_is_good() {
        assert_eq!(verdict(|_| ()), Verdict::Ok);
        assert_eq!(verdict(|place| place.owner_and_mode = None), Verdict::Ok);
        assert_eq!(verdict(|place| place.mount = None), Verdict::Ok);
    }

    #[test]
    fn the_containers_own_layer_is_no_state_volume() {
        assert_eq!(verdict(|place| place.outlives = false), Verdict::Fail);
    }

    #[test]
    fn a_full_read_only_or_foreign_folder_fails() {
        assert_eq!(
            verdict(|place| place.free_bytes = Some(1 << 20)),
            Verdict::Fail
        );
        assert_eq!(verdict(|place| place.is_read_only = true), Verdict::Fail);
        assert_eq!(
            verdict(|place| place.owner_and_mode = Some((1000, 0o700))),
            Verdict::Fail
        );
    }

    #[test]
    fn little_room_memory_and_no_folder_at_all_are_warnings() {
        assert_eq!(
            verdict(|place| place.free_bytes = Some(100 << 20)),
            Verdict::Warn
        );
        let memory = |place: &mut Place| {
            let mount = place.mount.as_mut().expect("a mount");
            "tmpfs".clone_into(&mut mount.kind);
        };
        assert_eq!(verdict(memory), Verdict::Warn);
        assert_eq!(
            verdict(|place| place.is_beside_sockets = true),
            Verdict::Warn
        );
        assert_eq!(judge(None).verdict, Verdict::Warn);
    }

    #[test]
    fn the_store_is_judged_by_what_it_is_like() {
        let agent = |state: &str| Content::Agent {
            state: state.to_owned(),
            trouble: "disk full".to_owned(),
        };
        for (content, verdict) in [
            (agent("durable"), Verdict::Ok),
            (agent("none"), Verdict::Warn),
            (agent("failing"), Verdict::Fail),
            (Content::Missing, Verdict::Ok),
            (Content::Damaged("page 3".to_owned()), Verdict::Fail),
            (Content::Unread("in use".to_owned()), Verdict::Fail),
        ] {
            assert_eq!(judge_store(&content).verdict, verdict, "{content:?}");
        }
    }
}
