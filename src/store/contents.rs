//! Reading and changing what is in an open database. Every function works within one transaction.

use redb::{
    Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    WriteTransaction,
};

use super::codec::{Kind, seal, unseal};
use super::events::{history_record, history_row};
use super::fault::Fault;
use super::names::{NameLookup, Names};
use super::records::{Numbering, chip, chip_row, die_key, held, held_row};
use super::retention::Retention;
use super::schema_1::{
    ALLOCATIONS, CHIPS, HISTORY, META, META_SCHEMA, META_SEQUENCE, NAMES, SchemaRecord,
    SequenceRecord,
};
use crate::domain::history::HistoryRecord;
use crate::domain::ids::CommitSequence;
use crate::ports::{Batch, HISTORY_PAGE_MAX, HistoryQuery, StoredState};

/// A write transaction that is on the disk when its commit returns.
pub(super) fn begin(database: &Database) -> Result<WriteTransaction, Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    Ok(transaction)
}

/// The schema of the file; `None` in a file that no agent finished creating.
pub(super) fn read_schema(database: &Database) -> Result<Option<SchemaRecord>, Fault> {
    let transaction = database.begin_read()?;
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(sealed) = meta.get(META_SCHEMA)? else {
        return Ok(None);
    };
    Ok(Some(unseal(Kind::Meta, &[META_SCHEMA], sealed.value())?))
}

/// Writes the schema record.
pub(super) fn write_schema(
    transaction: &WriteTransaction,
    record: &SchemaRecord,
) -> Result<(), Fault> {
    let mut meta = transaction.open_table(META)?;
    meta.insert(
        META_SCHEMA,
        seal(Kind::Meta, &[META_SCHEMA], record)?.as_slice(),
    )?;
    Ok(())
}

/// Everything the ledger is rebuilt from. One record that cannot be read is a damaged store: a
/// missing holder would be granted again.
pub(super) fn read_state(database: &Database) -> Result<StoredState, Fault> {
    let transaction = database.begin_read()?;
    let mut state = StoredState {
        last_sequence: last_sequence(&transaction)?.map(CommitSequence),
        ..StoredState::default()
    };
    for entry in transaction.open_table(ALLOCATIONS)?.iter()? {
        let (key, sealed) = entry?;
        state.allocations.push(held(unseal(
            Kind::Allocation,
            key.value(),
            sealed.value(),
        )?)?);
    }
    for entry in transaction.open_table(CHIPS)?.iter()? {
        let (key, sealed) = entry?;
        state
            .chips
            .push(chip(unseal(Kind::Chip, key.value(), sealed.value())?));
    }
    // The other tables must at least exist, or the first write would fail half a day later.
    transaction.open_table(HISTORY)?;
    transaction.open_table(super::schema_1::OUTBOX)?;
    Ok(state)
}

/// The names of the file.
pub(super) fn read_names(database: &Database) -> Result<Names, Fault> {
    Names::read(&database.begin_read()?.open_table(NAMES)?)
}

fn last_sequence(transaction: &ReadTransaction) -> Result<Option<u64>, Fault> {
    let meta = transaction.open_table(META)?;
    let Some(sealed) = meta.get(META_SEQUENCE)? else {
        return Ok(None);
    };
    let record: SequenceRecord = unseal(Kind::Meta, &[META_SEQUENCE], sealed.value())?;
    Ok(Some(record.last))
}

/// Applies a batch and returns the number of the commit, which is that of its last history record.
pub(super) fn apply(
    transaction: &WriteTransaction,
    names: &mut Names,
    last: Option<CommitSequence>,
    batch: &Batch,
    retention: Retention,
) -> Result<CommitSequence, Fault> {
    {
        let mut allocations = transaction.open_table(ALLOCATIONS)?;
        for id in &batch.remove {
            allocations.remove(id.0.as_bytes())?;
        }
        for held in &batch.put {
            let key = held.id.0.as_bytes();
            allocations.insert(
                key,
                seal(Kind::Allocation, key, &held_row(held))?.as_slice(),
            )?;
        }
    }
    {
        let mut chips = transaction.open_table(CHIPS)?;
        for record in &batch.chips {
            let key = die_key(record.chip.die);
            chips.insert(&key, seal(Kind::Chip, &key, &chip_row(record))?.as_slice())?;
        }
    }
    let mut sequence = last.map_or(0, |last| last.0);
    {
        let mut history = transaction.open_table(HISTORY)?;
        let mut numbering = Numbering {
            names,
            table: transaction.open_table(NAMES)?,
        };
        for (at, event) in &batch.history {
            sequence = next(sequence)?;
            let row = history_row(*at, event, &mut numbering)?;
            let sealed = seal(Kind::History, &sequence.to_be_bytes(), &row)?;
            history.insert(sequence, sealed.as_slice())?;
        }
        let surplus = retention.forced(history.len()?);
        remove_oldest(&mut history, surplus)?;
    }
    if batch.history.is_empty() {
        sequence = next(sequence)?;
    }
    let record = SequenceRecord { last: sequence };
    transaction.open_table(META)?.insert(
        META_SEQUENCE,
        seal(Kind::Meta, &[META_SEQUENCE], &record)?.as_slice(),
    )?;
    Ok(CommitSequence(sequence))
}

fn next(sequence: u64) -> Result<u64, Fault> {
    sequence
        .checked_add(1)
        .ok_or_else(|| Fault::Damage("the commit sequence has no next number".to_owned()))
}

/// Removes the oldest rows of the history.
pub(super) fn remove_oldest(
    history: &mut redb::Table<'_, u64, &'static [u8]>,
    rows: u64,
) -> Result<(), Fault> {
    for _ in 0..rows {
        if history.pop_first()?.is_none() {
            break;
        }
    }
    Ok(())
}

/// Records of history.
pub(super) fn history_len(database: &Database) -> Result<u64, Fault> {
    Ok(database.begin_read()?.open_table(HISTORY)?.len()?)
}

/// A page of history and the records that had to be left out because they are damaged.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) records: Vec<HistoryRecord>,
    pub(super) damaged: Vec<(CommitSequence, String)>,
}

/// Reads a page, oldest first.
pub(super) fn read_page(transaction: &ReadTransaction, query: HistoryQuery) -> Result<Page, Fault> {
    let limit = query.limit.min(HISTORY_PAGE_MAX);
    let mut page = Page::default();
    let Some(first) = query.after.map_or(Some(0), |after| after.0.checked_add(1)) else {
        return Ok(page);
    };
    let history = transaction.open_table(HISTORY)?;
    let mut names = NameLookup::new(transaction.open_table(NAMES)?);
    for entry in history.range(first..)? {
        if page.records.len() >= limit {
            break;
        }
        let (key, sealed) = entry?;
        let sequence = CommitSequence(key.value());
        let record = unseal(Kind::History, &sequence.0.to_be_bytes(), sealed.value())
            .map_err(Fault::from)
            .and_then(|row| history_record(sequence, row, &mut names));
        match record {
            Ok(record) if within(&query, &record) => page.records.push(record),
            Ok(_) => {}
            Err(Fault::Damage(cause)) => page.damaged.push((sequence, cause)),
            Err(fault) => return Err(fault),
        }
    }
    Ok(page)
}

fn within(query: &HistoryQuery, record: &HistoryRecord) -> bool {
    query
        .since_utc_ns
        .is_none_or(|since| record.at.utc_ns >= since)
        && query
            .until_utc_ns
            .is_none_or(|until| record.at.utc_ns < until)
}
