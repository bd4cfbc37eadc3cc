//! Reading the queue of writes for the API server, in the order of the commits that caused them.

use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata};

use super::codec::{Kind, unseal};
use super::fault::Fault;
use super::schema_1::{OUTBOX, OutboxRow};

/// Counts the waiting writes; each must be readable, a lost one would leave the cluster wrong.
pub(super) fn waiting(transaction: &ReadTransaction) -> Result<u64, Fault> {
    let table = transaction.open_table(OUTBOX)?;
    for entry in table.iter()? {
        let (key, sealed) = entry?;
        unseal::<OutboxRow>(Kind::Outbox, &key.value().to_be_bytes(), sealed.value())?;
    }
    Ok(table.len()?)
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;
    use redb::{Database, ReadableDatabase};

    use super::*;
    use crate::store::codec::seal;
    use crate::store::contents::begin;
    use crate::store::migrate::create;

    fn with_row(key: u64, sealed_under: u64) -> Database {
        let database = Database::builder()
            .create_with_backend(InMemoryBackend::new())
            .unwrap();
        let transaction = begin(&database).unwrap();
        create(&transaction, 0).unwrap();
        let row = OutboxRow {
            created_utc_ns: 1,
            tries: 2,
            target: "pods/default/train-0".to_owned(),
            patch: b"{}".to_vec(),
        };
        let sealed = seal(Kind::Outbox, &sealed_under.to_be_bytes(), &row).unwrap();
        transaction
            .open_table(OUTBOX)
            .unwrap()
            .insert(key, sealed.as_slice())
            .unwrap();
        transaction.commit().unwrap();
        database
    }

    #[test]
    fn counts_what_waits() {
        assert_eq!(waiting(&with_row(7, 7).begin_read().unwrap()).unwrap(), 1);
    }

    #[test]
    fn a_row_under_the_wrong_key_is_damage() {
        let refused = waiting(&with_row(7, 8).begin_read().unwrap());
        assert!(matches!(refused, Err(Fault::Damage(_))), "{refused:?}");
    }
}
