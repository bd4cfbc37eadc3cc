//! Numbers for the names history repeats. A number is written in the transaction that first uses it
//! and never changes; the set is bounded by the boots, chips and resources of one node.

use std::collections::BTreeMap;

use redb::{ReadableTable, Table};

use super::codec::{Kind, seal, unseal};
use super::fault::Fault;
use super::schema_1::NameRecord;

/// Every name of the file. Belongs to one connection: after a failed transaction it is read again.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: BTreeMap<NameRecord, u32>,
    next: u32,
}

impl Names {
    /// Reads the table; a damaged name costs the history that uses it, nothing else.
    pub(super) fn read(table: &impl ReadableTable<u32, &'static [u8]>) -> Result<Self, Fault> {
        let mut names = Self::default();
        for entry in table.iter()? {
            let (number, sealed) = entry?;
            let number = number.value();
            names.next = names.next.max(number.saturating_add(1));
            match decode(number, sealed.value()) {
                Ok(name) => {
                    names.numbers.insert(name, number);
                }
                Err(error) => tracing::warn!(number, %error, "damaged name in the store"),
            }
        }
        Ok(names)
    }

    /// The number of a name, given out and written if it is new.
    pub(super) fn number(
        &mut self,
        table: &mut Table<'_, u32, &'static [u8]>,
        name: NameRecord,
    ) -> Result<u32, Fault> {
        if let Some(number) = self.numbers.get(&name) {
            return Ok(*number);
        }
        let number = self.next;
        table.insert(
            number,
            seal(Kind::Name, &number.to_be_bytes(), &name)?.as_slice(),
        )?;
        self.next = number.saturating_add(1);
        self.numbers.insert(name, number);
        Ok(number)
    }
}

/// Looks numbers up in one read transaction and remembers them.
#[derive(Debug)]
pub(super) struct NameLookup<T> {
    table: T,
    known: BTreeMap<u32, NameRecord>,
}

impl<T: ReadableTable<u32, &'static [u8]>> NameLookup<T> {
    pub(super) fn new(table: T) -> Self {
        Self {
            table,
            known: BTreeMap::new(),
        }
    }

    pub(super) fn name(&mut self, number: u32) -> Result<NameRecord, Fault> {
        if let Some(name) = self.known.get(&number) {
            return Ok(name.clone());
        }
        let sealed = self
            .table
            .get(number)?
            .ok_or_else(|| Fault::Damage(format!("name {number} is missing")))?;
        let name = decode(number, sealed.value())?;
        self.known.insert(number, name.clone());
        Ok(name)
    }
}

fn decode(number: u32, sealed: &[u8]) -> Result<NameRecord, Fault> {
    Ok(unseal(Kind::Name, &number.to_be_bytes(), sealed)?)
}
