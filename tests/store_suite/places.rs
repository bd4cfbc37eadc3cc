//! The state directory: modes, owners, schemas, read-only and full file systems.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use ascend_agent::ports::{Journal, JournalError};
use ascend_agent::store::OpenError;

use crate::fixtures::{chain, directory, grant, model, open, sorted};
use crate::offline::content;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn directory_and_files_are_closed_to_others() {
    let (_keep, directory) = directory();
    let store = open(&directory).unwrap().store;
    store.commit(grant(&[1])).await.unwrap();
    assert_eq!(mode(&directory), 0o700);
    for name in content(&directory).keys() {
        assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn what_is_open_to_others_is_closed_at_the_next_start() {
    let (_keep, directory) = directory();
    open(&directory).unwrap().store.close().await;
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    for name in ["state.redb", "agent.lock"] {
        fs::set_permissions(directory.join(name), Permissions::from_mode(0o644)).unwrap();
    }
    let opened = open(&directory).unwrap();
    assert_eq!(opened.rebuilt, None);
    assert_eq!(mode(&directory), 0o700);
    for name in ["state.redb", "agent.lock"] {
        assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_nothing_is_touched() {
    let (_keep, directory) = directory();
    open(&directory).unwrap().store.close().await;
    fs::remove_file(directory.join("agent.lock")).unwrap();
    fs::write(directory.join("schema"), "2\n").unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    let before = content(&directory);
    let refused = open(&directory).unwrap_err();
    assert!(
        matches!(
            refused,
            OpenError::NewerSchema {
                found: 2,
                known: 1,
                ..
            }
        ),
        "{refused}"
    );
    assert!(!refused.retryable());
    assert_eq!(content(&directory), before);
    assert_eq!(mode(&directory), 0o755);
}

#[tokio::test]
async fn a_lost_or_mangled_schema_file_is_written_anew_from_the_database() {
    let (_keep, directory) = directory();
    open(&directory).unwrap().store.close().await;
    for mangled in [Some("x"), None] {
        match mangled {
            Some(text) => fs::write(directory.join("schema"), text).unwrap(),
            None => fs::remove_file(directory.join("schema")).unwrap(),
        }
        let opened = open(&directory).unwrap();
        assert_eq!(opened.rebuilt, None);
        assert_eq!(fs::read(directory.join("schema")).unwrap(), b"1\n");
        opened.store.close().await;
    }
}

#[test]
fn a_directory_of_somebody_else_is_refused() {
    let (_keep, directory) = directory();
    fs::create_dir(&directory).unwrap();
    let foreign = if fs::metadata(&directory).unwrap().uid() == 0 {
        std::os::unix::fs::chown(&directory, Some(65_534), None).unwrap();
        directory
    } else {
        PathBuf::from("/")
    };
    let refused = open(&foreign).unwrap_err();
    assert!(
        matches!(refused, OpenError::ForeignOwner { .. }),
        "{refused}"
    );
}

#[test]
fn a_file_in_the_place_of_the_directory_is_refused_by_name() {
    let (_keep, directory) = directory();
    fs::write(&directory, "x").unwrap();
    let text = chain(&open(&directory).unwrap_err());
    assert!(text.contains(directory.to_str().unwrap()), "{text}");
    assert!(text.contains("must be a directory on a writable"), "{text}");
}

#[test]
fn a_link_in_the_place_of_the_database_is_not_followed() {
    let (_keep, directory) = directory();
    fs::create_dir(&directory).unwrap();
    let elsewhere = directory.with_file_name("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    std::os::unix::fs::symlink(&elsewhere, directory.join("state.redb")).unwrap();
    open(&directory).unwrap_err();
    assert_eq!(fs::read(elsewhere).unwrap(), b"precious");
}

/// Runs one ignored test of this file in a mount namespace of its own, on a small file system.
fn in_namespace(test: &str, size: &str) {
    let (_keep, directory) = directory();
    fs::create_dir(&directory).unwrap();
    let script = "mount -t tmpfs -o size=$SIZE,mode=700 store \"$PLACE\" && \
                  exec \"$TEST\" --ignored --exact \"$NAME\" --nocapture";
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .env("SIZE", size)
        .env("PLACE", &directory)
        .env("TEST", std::env::current_exe().unwrap())
        .env("NAME", format!("places::{test}"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn place() -> PathBuf {
    PathBuf::from(std::env::var_os("PLACE").expect("run by its parent test"))
}

#[test]
fn a_read_only_directory_is_refused_by_name() {
    in_namespace("inside_a_read_only_directory", "4m");
}

#[tokio::test]
#[ignore = "run in a mount namespace by a_read_only_directory_is_refused_by_name"]
async fn inside_a_read_only_directory() {
    let store = open(&place()).unwrap().store;
    store.commit(grant(&[1])).await.unwrap();
    store.close().await;
    let remount = |how: &str| {
        let status = Command::new("mount")
            .args(["-o", how])
            .arg(place())
            .status()
            .unwrap();
        assert!(status.success());
    };
    remount("remount,ro");
    let refused = open(&place()).unwrap_err();
    let text = chain(&refused);
    assert!(text.contains(place().to_str().unwrap()), "{text}");
    assert!(text.contains("Read-only file system"), "{text}");
    remount("remount,rw");
    let opened = open(&place()).unwrap();
    assert_eq!(opened.rebuilt, None);
    assert_eq!(sorted(opened.state), model(&[grant(&[1])]));
}

#[test]
fn a_full_disk_refuses_commits_and_heals_when_space_is_made() {
    in_namespace("inside_a_full_disk", "2m");
}

#[tokio::test]
#[ignore = "run in a mount namespace by a_full_disk_refuses_commits_and_heals_when_space_is_made"]
async fn inside_a_full_disk() {
    let store = open(&place()).unwrap().store;
    store.commit(grant(&[0])).await.unwrap();
    let ballast = place().join("ballast");
    drop(fs::write(&ballast, vec![1; 2 << 20]).unwrap_err());
    let mut acknowledged = vec![grant(&[0])];
    let mut full = None;
    for number in 1..2000 {
        match store.commit(grant(&[number])).await {
            Ok(_) => acknowledged.push(grant(&[number])),
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    assert!(matches!(full, Some(JournalError::Full { .. })), "{full:?}");
    fs::remove_file(&ballast).unwrap();
    assert_eq!(sorted(store.load().await.unwrap()), model(&acknowledged));
    store.commit(grant(&[5000])).await.unwrap();
    acknowledged.push(grant(&[5000]));
    store.close().await;
    let opened = open(&place()).unwrap();
    assert_eq!(opened.rebuilt, None);
    assert_eq!(sorted(opened.state), model(&acknowledged));
}

#[test]
fn a_damaged_file_on_a_full_disk_stays_where_it_is() {
    in_namespace("inside_a_full_disk_with_a_damaged_file", "1m");
}

#[tokio::test]
#[ignore = "run in a mount namespace by a_damaged_file_on_a_full_disk_stays_where_it_is"]
async fn inside_a_full_disk_with_a_damaged_file() {
    let state = place().join("state.redb");
    fs::write(&state, "damaged").unwrap();
    let ballast = place().join("ballast");
    drop(fs::write(&ballast, vec![1; 1 << 20]).unwrap_err());
    let refused = open(&place()).unwrap_err();
    assert!(matches!(refused, OpenError::Full { .. }), "{refused}");
    assert_eq!(fs::read(&state).unwrap(), b"damaged");
    assert!(!place().join("state.redb.new").exists());
    fs::remove_file(&ballast).unwrap();
    assert!(open(&place()).unwrap().rebuilt.unwrap().set_aside.is_some());
}
