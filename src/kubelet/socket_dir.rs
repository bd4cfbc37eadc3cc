//! Kubelet's socket directory: is it the one we may trust, and which sockets in it are ours. Only
//! sockets are ever created or removed here; kubelet deletes every plain file when it starts.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use uuid::Uuid;

use super::config::SocketOwner;
use crate::domain::ids::ResourceName;

/// Longest path a Unix socket can be bound to, without the closing NUL.
const SOCKET_PATH_MAX_BYTES: usize = 107;

/// Only root may connect.
const SOCKET_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

const BACKLOG: i32 = 64;

/// Short names of the resources of all chips; what may follow one begins with a dash.
const RESOURCES: [&str; 5] = [
    "Ascend910",
    "Ascend310",
    "Ascend310P",
    "npu",
    "davinci-mini",
];

/// A dead socket refuses at once; a live one that is too busy to answer so long is left alone.
const PROBE_DEADLINE: Duration = Duration::from_millis(200);

/// Why a directory or socket of kubelet's cannot be used. May heal: the room keeps looking.
#[derive(Debug, thiserror::Error)]
pub enum SocketDirError {
    /// Not there.
    #[error(
        "{path} does not exist; it appears when kubelet starts and must be mounted into the agent"
    )]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// Relative, or with `..` in it.
    #[error("{path} must be an absolute path without '..'")]
    NotPlain {
        /// The path.
        path: PathBuf,
    },
    /// A symbolic link in it.
    #[error("{path} leads through the symbolic link {link}; configure the path it points to")]
    Symlink {
        /// The path.
        path: PathBuf,
        /// The link.
        link: PathBuf,
    },
    /// Something else is there.
    #[error("{path} is not a {wanted}; remove what is there and restart kubelet")]
    WrongKind {
        /// The path.
        path: PathBuf,
        /// What should be there.
        wanted: &'static str,
    },
    /// Somebody else's.
    #[error(
        "{path} is owned by {uid}:{gid} instead of {}:{}; chown it and restart kubelet",
        expected.uid,
        expected.gid
    )]
    Owner {
        /// The path.
        path: PathBuf,
        /// Found user.
        uid: u32,
        /// Found group.
        gid: u32,
        /// Who should own it.
        expected: SocketOwner,
    },
    /// Too long for a socket.
    #[error(
        "socket path {path} is longer than {SOCKET_PATH_MAX_BYTES} bytes; use a shorter directory"
    )]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{step} {path}")]
    System {
        /// What was tried.
        step: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl SocketDirError {
    /// Whether it may heal without a change of the agent's configuration.
    #[must_use]
    pub fn retryable(&self) -> bool {
        !matches!(self, Self::NotPlain { .. } | Self::TooLong { .. })
    }
}

/// Which file stands behind a name. Inode numbers are used again at once, so the time of creation
/// belongs to it; a socket's modification time never changes after its bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    /// Reads the name itself, not what a link points to.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        path.symlink_metadata().map(|found| Self {
            device: found.dev(),
            inode: found.ino(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }

    /// Device and inode alone.
    pub(super) fn place(self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

/// The directory with the rules for it.
#[derive(Clone, Debug)]
pub(super) struct SocketDir {
    path: PathBuf,
    owner: SocketOwner,
    run: Uuid,
}

impl SocketDir {
    pub(super) fn new(path: PathBuf, owner: SocketOwner, run: Uuid) -> Self {
        Self { path, owner, run }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the directory is there, reached without links and owned by the right user.
    pub(super) fn check(&self) -> Result<(), SocketDirError> {
        let path = self.path.clone();
        let mut walked = PathBuf::new();
        for component in self.path.components() {
            if !matches!(component, Component::RootDir | Component::Normal(_)) {
                return Err(SocketDirError::NotPlain { path });
            }
            walked.push(component);
            if lstat(&walked, &path)?.is_symlink() {
                let link = walked;
                return Err(SocketDirError::Symlink { path, link });
            }
        }
        if !walked.is_absolute() {
            return Err(SocketDirError::NotPlain { path });
        }
        let found = lstat(&walked, &path)?;
        if !found.is_dir() {
            let wanted = "directory";
            return Err(SocketDirError::WrongKind { path, wanted });
        }
        self.check_owner(path, &found)
    }

    /// Whether kubelet's registry socket may be trusted.
    pub(super) fn check_socket(&self, socket: &Path) -> Result<FileIdentity, SocketDirError> {
        let path = socket.to_owned();
        let found = lstat(socket, socket)?;
        if found.is_symlink() {
            let link = path.clone();
            return Err(SocketDirError::Symlink { path, link });
        }
        if !found.file_type().is_socket() {
            let wanted = "socket";
            return Err(SocketDirError::WrongKind { path, wanted });
        }
        self.check_owner(path.clone(), &found)?;
        FileIdentity::read(socket).map_err(|source| system("look at", &path, source))
    }

    fn check_owner(&self, path: PathBuf, found: &std::fs::Metadata) -> Result<(), SocketDirError> {
        let (uid, gid) = (found.uid(), found.gid());
        if (uid, gid) == (self.owner.uid, self.owner.gid) {
            return Ok(());
        }
        let expected = self.owner;
        Err(SocketDirError::Owner {
            path,
            uid,
            gid,
            expected,
        })
    }

    /// `<resource>-<run>-<generation>.sock`, the resource cut where the path would get too long.
    pub(super) fn socket_path(
        &self,
        resource: &ResourceName,
        generation: u64,
    ) -> Result<PathBuf, SocketDirError> {
        let tail = format!("-{}-{generation}.sock", self.run_text());
        let room = SOCKET_PATH_MAX_BYTES
            .checked_sub(self.path.as_os_str().len() + 1 + tail.len())
            .filter(|room| *room > 0);
        let Some(room) = room else {
            let path = self.path.join(tail);
            return Err(SocketDirError::TooLong { path });
        };
        let short: String = resource.short().chars().take(room).collect();
        Ok(self.path.join(short + &tail))
    }

    /// Its last four bytes: the first ones of a time-ordered id are equal within a minute.
    fn run_text(&self) -> String {
        let mut text = self.run.simple().to_string();
        text.split_off(text.len().saturating_sub(8))
    }

    /// Removes the sockets that earlier runs left behind for this resource: named like ours, owned
    /// by the right user, a socket, and nobody listening.
    pub(super) async fn remove_dead(&self, resource: &ResourceName) -> Vec<PathBuf> {
        self.remove_dead_named(|path| self.is_named_like_ours(path, resource))
            .await
    }

    /// Removes by the same rules what other plugins for these chips left behind, the vendor's among
    /// them: for resources that are not offered now nobody else would.
    pub(super) async fn remove_dead_of_others(&self) -> Vec<PathBuf> {
        self.remove_dead_named(is_named_like_a_resource).await
    }

    async fn remove_dead_named(&self, named: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let mut removed = Vec::new();
        let Ok(entries) = std::fs::read_dir(&self.path) else {
            return removed;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if named(&path)
                && self.check_socket(&path).is_ok()
                && is_dead(&path).await
                && std::fs::remove_file(&path).is_ok()
            {
                removed.push(path);
            }
        }
        removed
    }

    fn is_named_like_ours(&self, path: &Path, resource: &ResourceName) -> bool {
        let parts = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".sock"))
            .and_then(|name| name.rsplit_once('-'))
            .and_then(|(rest, generation)| Some((rest.rsplit_once('-')?, generation)));
        let Some(((short, run), generation)) = parts else {
            return false;
        };
        // The run in a name is as long as ours, so the resource was cut at the same place.
        let expected = generation
            .parse()
            .ok()
            .and_then(|number| self.socket_path(resource, number).ok());
        let expected_short = expected
            .as_deref()
            .and_then(|path| {
                path.file_name()?
                    .to_str()?
                    .rsplit_once('-')?
                    .0
                    .rsplit_once('-')
            })
            .map(|(short, _)| short);
        expected_short == Some(short)
            && run.len() == 8
            && run
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }
}

/// Listens on a new socket that only root can open, from its first moment on.
pub(super) fn bind(path: &Path) -> Result<(UnixListener, FileIdentity), SocketDirError> {
    if path.as_os_str().len() > SOCKET_PATH_MAX_BYTES {
        let path = path.to_owned();
        return Err(SocketDirError::TooLong { path });
    }
    let failed = |step| move |errno: rustix::io::Errno| system(step, path, errno.into());
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(failed("make a socket for"))?;
    // The mode of the unbound socket is what bind gives to the file, so it is never wider.
    rustix::fs::fchmod(&socket, SOCKET_MODE).map_err(failed("set the mode of"))?;
    let address = SocketAddrUnix::new(path).map_err(failed("name"))?;
    rustix::net::bind(&socket, &address).map_err(failed("bind"))?;
    rustix::net::listen(&socket, BACKLOG).map_err(failed("listen on"))?;
    let identity = FileIdentity::read(path)
        .map_err(|source| system("look at the new socket", path, source))?;
    Ok((UnixListener::from(socket), identity))
}

/// Removes the file only if it is still the one we made.
pub(super) fn remove_own(path: &Path, identity: FileIdentity) -> io::Result<()> {
    match FileIdentity::read(path) {
        Ok(found) if found == identity => std::fs::remove_file(path),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_named_like_a_resource(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(stem) = name.and_then(|name| name.strip_suffix(".sock")) else {
        return false;
    };
    RESOURCES.iter().any(|resource| {
        stem.strip_prefix(resource)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

async fn is_dead(path: &Path) -> bool {
    let probe = tokio::net::UnixStream::connect(path);
    matches!(
        tokio::time::timeout(PROBE_DEADLINE, probe).await,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused
    )
}

fn lstat(walked: &Path, path: &Path) -> Result<std::fs::Metadata, SocketDirError> {
    walked.symlink_metadata().map_err(|source| {
        if source.kind() == io::ErrorKind::NotFound {
            let path = path.to_owned();
            return SocketDirError::Missing { path };
        }
        system("look at", walked, source)
    })
}

fn system(step: &'static str, path: &Path, source: io::Error) -> SocketDirError {
    let path = path.to_owned();
    SocketDirError::System { step, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket_dir(path: &Path) -> SocketDir {
        let path = path.canonicalize().unwrap();
        let found = path.symlink_metadata().unwrap();
        let owner = SocketOwner {
            uid: found.uid(),
            gid: found.gid(),
        };
        SocketDir::new(path, owner, Uuid::from_u128(0xABCD_1234))
    }

    fn resource() -> ResourceName {
        ResourceName::new("huawei.com/Ascend910").unwrap()
    }

    #[test]
    fn accepts_a_plain_directory_of_the_right_owner() {
        let temp = tempfile::tempdir().unwrap();
        socket_dir(temp.path()).check().unwrap();
    }

    #[test]
    fn names_a_missing_directory() {
        let temp = tempfile::tempdir().unwrap();
        let mut dir = socket_dir(temp.path());
        dir.path.push("gone");
        assert!(matches!(dir.check(), Err(SocketDirError::Missing { .. })));
    }

    #[test]
    fn refuses_a_link_anywhere_in_the_path() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("real/sub")).unwrap();
        std::os::unix::fs::symlink(temp.path().join("real"), temp.path().join("link")).unwrap();
        let mut dir = socket_dir(temp.path());
        dir.path.push("link/sub");
        let error = dir.check().unwrap_err();
        assert!(matches!(&error, SocketDirError::Symlink { link, .. } if link.ends_with("link")));
    }

    #[test]
    fn refuses_another_owner_and_says_whom_it_found() {
        let temp = tempfile::tempdir().unwrap();
        let mut dir = socket_dir(temp.path());
        let found = dir.owner;
        dir.owner.gid += 1;
        let text = dir.check().unwrap_err().to_string();
        assert!(
            text.contains(&format!("{}:{}", found.uid, found.gid)),
            "{text}"
        );
        assert!(text.contains("chown"), "{text}");
    }

    #[test]
    fn refuses_a_plain_file_in_place_of_a_directory_or_socket_and_a_relative_path() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("file");
        std::fs::write(&file, "").unwrap();
        let mut dir = socket_dir(temp.path());
        let wrong = dir.check_socket(&file);
        assert!(matches!(wrong, Err(SocketDirError::WrongKind { .. })));
        dir.path = file;
        assert!(matches!(dir.check(), Err(SocketDirError::WrongKind { .. })));
        dir.path = PathBuf::from("relative");
        assert!(dir.check().is_err());
    }

    #[test]
    fn a_new_socket_is_open_to_its_owner_only() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.sock");
        let (_listener, identity) = bind(&path).unwrap();
        assert_eq!(path.symlink_metadata().unwrap().mode() & 0o7777, 0o600);
        remove_own(&path, identity).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn leaves_a_socket_that_took_the_place_of_ours() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.sock");
        let (listener, identity) = bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (_other, _) = bind(&path).unwrap();
        drop(listener);
        remove_own(&path, identity).unwrap();
        assert!(path.exists());
    }

    #[test]
    fn socket_names_differ_by_generation_and_fit_the_limit() {
        let temp = tempfile::tempdir().unwrap();
        let dir = socket_dir(temp.path());
        let long = ResourceName::new(format!("huawei.com/{}", "a".repeat(63))).unwrap();
        let first = dir.socket_path(&resource(), 1).unwrap();
        assert!(
            first.ends_with("Ascend910-abcd1234-1.sock"),
            "{}",
            first.display()
        );
        assert_ne!(first, dir.socket_path(&resource(), 2).unwrap());
        let cut = dir.socket_path(&long, u64::MAX).unwrap();
        assert!(cut.as_os_str().len() <= SOCKET_PATH_MAX_BYTES);
    }

    #[tokio::test]
    async fn removes_dead_sockets_of_ours_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let dir = socket_dir(temp.path());
        let at = |name: &str| dir.path().join(name);
        for dead in [
            "Ascend910-00000001-7.sock",
            "Ascend910.sock",
            "gpu-00000001-7.sock",
        ] {
            drop(bind(&at(dead)).unwrap());
        }
        let (_live, _) = bind(&at("Ascend910-00000002-1.sock")).unwrap();
        std::fs::write(at("Ascend910-00000003-1.sock"), "not a socket").unwrap();
        std::fs::write(at("kubelet_internal_checkpoint"), "{}").unwrap();
        let removed = dir.remove_dead(&resource()).await;
        assert_eq!(removed, [at("Ascend910-00000001-7.sock")]);
        for kept in [
            "Ascend910.sock",
            "gpu-00000001-7.sock",
            "Ascend910-00000002-1.sock",
            "Ascend910-00000003-1.sock",
            "kubelet_internal_checkpoint",
        ] {
            assert!(at(kept).exists(), "{kept}");
        }
    }
}
