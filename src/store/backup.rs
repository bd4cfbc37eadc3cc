//! A consistent copy, made row by row from one read transaction: it holds no torn state whatever is
//! committed meanwhile, and is as small as its content.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::backends::FileBackend;
use redb::{
    Database, Key, ReadTransaction, ReadableTable, TableDefinition, Value, WriteTransaction,
};
use rustix::fs::OFlags;

use super::contents::begin;
use super::fault::{Fault, guarded};
use super::place::open;
use super::schema_1::{ALLOCATIONS, CHIPS, HISTORY, META, NAMES, OUTBOX};
use crate::ports::JournalError;

const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// Writes the copy; `to` must not exist and is removed again when anything fails. Returns its bytes.
pub(super) fn write(
    from: &ReadTransaction,
    to: &Path,
    cancelled: &AtomicBool,
) -> Result<u64, JournalError> {
    let file = open(to, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL).map_err(|error| {
        JournalError::Request(format!("cannot create the copy {}: {error}", to.display()))
    })?;
    let written = guarded(|| copy(from, file, cancelled)).and_then(|()| {
        let bytes = open(to, OFlags::RDONLY)
            .and_then(|file| file.sync_all().and_then(|()| file.metadata()))
            .map_err(Fault::Io)?
            .len();
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))
            .and_then(|directory| directory.sync_all())
            .map_err(Fault::Io)?;
        Ok(bytes)
    });
    written.map_err(|fault| {
        if let Err(error) = std::fs::remove_file(to) {
            tracing::warn!(path = %to.display(), %error, "unfinished copy could not be removed");
        }
        fault.journal_error(to)
    })
}

fn copy(from: &ReadTransaction, file: File, cancelled: &AtomicBool) -> Result<(), Fault> {
    let database = Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create_with_backend(FileBackend::new(file)?)?;
    let transaction = begin(&database)?;
    copy_table(from, &transaction, CHIPS, cancelled)?;
    copy_table(from, &transaction, ALLOCATIONS, cancelled)?;
    copy_table(from, &transaction, HISTORY, cancelled)?;
    copy_table(from, &transaction, NAMES, cancelled)?;
    copy_table(from, &transaction, OUTBOX, cancelled)?;
    copy_table(from, &transaction, META, cancelled)?;
    transaction.commit()?;
    Ok(database.close()?)
}

fn copy_table<K: Key, V: Value>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'static, K, V>,
    cancelled: &AtomicBool,
) -> Result<(), Fault> {
    let mut target = to.open_table(table)?;
    for entry in from.open_table(table)?.iter()? {
        if cancelled.load(Ordering::Relaxed) {
            return Err(Fault::Request("the copy was cancelled".to_owned()));
        }
        let (key, value) = entry?;
        target.insert(key.value(), value.value())?;
    }
    Ok(())
}
