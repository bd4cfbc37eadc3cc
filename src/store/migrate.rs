//! Brings an older database to the newest schema: a copy of the file first, then every step in one
//! transaction, so that the file is of one version or the other and never between them.

use std::io;
use std::path::PathBuf;

use redb::{Database, WriteTransaction};

use super::contents::{begin, write_schema};
use super::fault::Fault;
use super::schema_1::{self, SchemaRecord};

/// The schema this agent writes.
pub(super) const NEWEST: u32 = schema_1::VERSION;

/// One version to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    from: u32,
    run: fn(&WriteTransaction) -> Result<(), Fault>,
}

/// Every step there is, in order.
pub(super) const STEPS: &[Step] = &[];

/// Creates the newest schema in an empty database.
pub(super) fn create(transaction: &WriteTransaction, utc_ns: i64) -> Result<(), Fault> {
    schema_1::create_tables(transaction)?;
    write_schema(
        transaction,
        &SchemaRecord {
            version: NEWEST,
            created_utc_ns: utc_ns,
        },
    )
}

/// Migrates to `newest` if need be; returns where the copy of the older file lies.
pub(super) fn migrate(
    database: &Database,
    found: &SchemaRecord,
    newest: u32,
    steps: &[Step],
    copy: impl FnOnce() -> io::Result<PathBuf>,
) -> Result<Option<PathBuf>, Fault> {
    if found.version > newest {
        return Err(Fault::NewerSchema {
            found: found.version,
            known: newest,
        });
    }
    if found.version == newest {
        return Ok(None);
    }
    let copied = copy().map_err(Fault::Io)?;
    let transaction = begin(database)?;
    for version in found.version..newest {
        let step = steps
            .iter()
            .find(|step| step.from == version)
            .ok_or_else(|| Fault::Damage(format!("there has never been a schema {version}")))?;
        (step.run)(&transaction)?;
    }
    let record = SchemaRecord {
        version: newest,
        created_utc_ns: found.created_utc_ns,
    };
    write_schema(&transaction, &record)?;
    transaction.commit()?;
    tracing::info!(from = found.version, to = newest, copy = %copied.display(), "store migrated");
    Ok(Some(copied))
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;
    use redb::{ReadableDatabase, ReadableTableMetadata, TableDefinition};

    use super::*;
    use crate::store::contents::read_schema;

    const ADDED: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("added");

    fn version_1() -> Database {
        let database = Database::builder()
            .create_with_backend(InMemoryBackend::new())
            .unwrap();
        let transaction = begin(&database).unwrap();
        create(&transaction, 5).unwrap();
        transaction.commit().unwrap();
        database
    }

    fn add_table(transaction: &WriteTransaction) -> Result<(), Fault> {
        transaction.open_table(ADDED)?.insert(1, b"x".as_slice())?;
        Ok(())
    }

    fn fail(_: &WriteTransaction) -> Result<(), Fault> {
        Err(Fault::Unusable("this step fails".to_owned()))
    }

    fn added(database: &Database) -> u64 {
        let transaction = database.begin_read().unwrap();
        transaction
            .open_table(ADDED)
            .map_or(0, |table| table.len().unwrap())
    }

    #[test]
    fn copies_first_and_then_runs_every_step_once() {
        let database = version_1();
        let found = read_schema(&database).unwrap().unwrap();
        let steps = [
            Step {
                from: 1,
                run: add_table,
            },
            Step {
                from: 2,
                run: |_| Ok(()),
            },
        ];
        let copy = || Ok(PathBuf::from("copy"));
        let copied = migrate(&database, &found, 3, &steps, copy).unwrap();
        assert_eq!(copied, Some(PathBuf::from("copy")));
        let record = read_schema(&database).unwrap().unwrap();
        assert_eq!(
            record,
            SchemaRecord {
                version: 3,
                created_utc_ns: 5
            }
        );
        assert_eq!(added(&database), 1);
        let again = migrate(&database, &record, 3, &steps, || {
            Err(io::Error::other("copied twice"))
        });
        assert_eq!(again.unwrap(), None);
    }

    #[test]
    fn a_step_that_fails_leaves_the_older_version_whole() {
        let database = version_1();
        let found = read_schema(&database).unwrap().unwrap();
        let steps = [
            Step {
                from: 1,
                run: add_table,
            },
            Step { from: 2, run: fail },
        ];
        migrate(&database, &found, 3, &steps, || Ok(PathBuf::new())).unwrap_err();
        assert_eq!(read_schema(&database).unwrap().unwrap(), found);
        assert_eq!(added(&database), 0);
    }

    #[test]
    fn does_not_begin_without_a_copy() {
        let database = version_1();
        let found = read_schema(&database).unwrap().unwrap();
        let steps = [Step {
            from: 1,
            run: add_table,
        }];
        let refused = migrate(&database, &found, 2, &steps, || {
            Err(io::Error::other("no space"))
        });
        assert!(matches!(refused, Err(Fault::Io(_))), "{refused:?}");
        assert_eq!(added(&database), 0);
    }

    #[test]
    fn refuses_a_newer_schema() {
        let database = version_1();
        let found = SchemaRecord {
            version: NEWEST + 1,
            created_utc_ns: 0,
        };
        let refused = migrate(&database, &found, NEWEST, STEPS, || Ok(PathBuf::new()));
        assert!(
            matches!(refused, Err(Fault::NewerSchema { .. })),
            "{refused:?}"
        );
    }
}
