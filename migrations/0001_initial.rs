//! Schema version 1, frozen: its tables and the form of its records. Never edited after a release; a
//! change of any record is a new version with its own file, so that old files stay readable.
//!
//! Held state (`CHIPS`, `ALLOCATIONS`) spells every name out, so that no other record can change who
//! holds what. History repeats the same few boots, dies and resources hundred thousands of times and
//! names them by a number of `NAMES`. Fault codes are numbers already and gain nothing by it.

use redb::{TableDefinition, TableError, WriteTransaction};
use serde::{Deserialize, Serialize};

/// This version.
pub(crate) const VERSION: u32 = 1;

/// Facts about the file: [`META_SCHEMA`] and [`META_SEQUENCE`].
pub(crate) const META: TableDefinition<'static, u8, &'static [u8]> = TableDefinition::new("meta");
/// Known chips by die id, five big-endian words.
pub(crate) const CHIPS: TableDefinition<'static, &'static [u8; 20], &'static [u8]> =
    TableDefinition::new("chips");
/// Held chips by allocation id.
pub(crate) const ALLOCATIONS: TableDefinition<'static, &'static [u8; 16], &'static [u8]> =
    TableDefinition::new("allocations");
/// History by commit sequence.
pub(crate) const HISTORY: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("history");
/// Names that history repeats, by the number that stands for them.
pub(crate) const NAMES: TableDefinition<'static, u32, &'static [u8]> =
    TableDefinition::new("names");
/// Writes that wait for the API server, by commit sequence.
pub(crate) const OUTBOX: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("outbox");

/// Key of [`SchemaRecord`] in [`META`].
pub(crate) const META_SCHEMA: u8 = 1;
/// Key of [`SequenceRecord`] in [`META`].
pub(crate) const META_SEQUENCE: u8 = 2;

/// Creates the empty tables.
pub(crate) fn create_tables(transaction: &WriteTransaction) -> Result<(), TableError> {
    transaction.open_table(META)?;
    transaction.open_table(CHIPS)?;
    transaction.open_table(ALLOCATIONS)?;
    transaction.open_table(HISTORY)?;
    transaction.open_table(NAMES)?;
    transaction.open_table(OUTBOX)?;
    Ok(())
}

/// What the file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SchemaRecord {
    pub(crate) version: u32,
    pub(crate) created_utc_ns: i64,
}

/// The last number given out; numbers are never used twice, whatever retention removes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SequenceRecord {
    pub(crate) last: u64,
}

/// Both clocks, the boot by its id (`B = [u8; 16]`) or by a number of `NAMES` (`B = u32`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StampRecord<B> {
    pub(crate) boot: B,
    pub(crate) boot_time_ns: u64,
    pub(crate) utc_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FamilyRecord {
    Ascend310,
    Ascend310B,
    Ascend310P,
    Ascend910,
    Ascend910B,
    Ascend910A3,
    Ascend950,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PciRecord {
    pub(crate) domain: u32,
    pub(crate) bus: u32,
    pub(crate) device: u32,
    pub(crate) function: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChipRow {
    pub(crate) die: [u32; 5],
    pub(crate) card: i32,
    pub(crate) device: i32,
    pub(crate) logic: u32,
    pub(crate) phy: u32,
    pub(crate) family: FamilyRecord,
    pub(crate) chip_name: String,
    pub(crate) ai_cores: Option<u32>,
    pub(crate) board_id: Option<u32>,
    pub(crate) pci: Option<PciRecord>,
    pub(crate) numa_nodes: Vec<u32>,
    pub(crate) product_type: Option<String>,
    pub(crate) seen: StampRecord<[u8; 16]>,
    pub(crate) present: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OriginRecord {
    Granted,
    Adopted,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnerRecord {
    pub(crate) pod_uid: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) pod: Option<String>,
    pub(crate) container: Option<String>,
}

/// An allocation with its names spelled out (`B = [u8; 16]`, `D = [u32; 5]`, `R = String`) or by their
/// numbers of `NAMES` (all `u32`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AllocationRow<B, D, R> {
    pub(crate) id: [u8; 16],
    pub(crate) grant: [u8; 16],
    pub(crate) resource: R,
    pub(crate) plugin_device_id: String,
    pub(crate) die: D,
    pub(crate) phy: u32,
    pub(crate) origin: OriginRecord,
    pub(crate) granted: StampRecord<B>,
    pub(crate) confirmed: bool,
    pub(crate) owner: OwnerRecord,
}

/// Held form.
pub(crate) type HeldRow = AllocationRow<[u8; 16], [u32; 5], String>;
/// Form in history.
pub(crate) type PastRow = AllocationRow<u32, u32, u32>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReleaseCauseRecord {
    ProvenGone,
    GrantedAgain,
    OwnerMoved,
}

/// A history record; its sequence is its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HistoryRow {
    pub(crate) at: StampRecord<u32>,
    pub(crate) event: EventRecord,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EventRecord {
    AgentStarted {
        version: String,
    },
    AgentStopped,
    Granted {
        allocation: PastRow,
    },
    GrantRepeated {
        allocation: [u8; 16],
        plugin_device_id: String,
        die: u32,
    },
    Confirmed {
        allocation: [u8; 16],
        die: u32,
        owner: OwnerRecord,
    },
    Adopted {
        allocation: PastRow,
    },
    Released {
        allocation: PastRow,
        cause: ReleaseCauseRecord,
    },
    Refused {
        resource: u32,
        ids: Vec<String>,
        reason: String,
    },
    ChipAppeared {
        die: u32,
        phy: u32,
        chip_name: String,
    },
    ChipMoved {
        die: u32,
        from: u32,
        to: u32,
    },
    ChipVanished {
        die: u32,
        phy: u32,
    },
    ChipHealth {
        die: u32,
        phy: u32,
        healthy: bool,
        reason: String,
        codes: Vec<u32>,
    },
    StoreRebuilt {
        set_aside: String,
        damage: String,
    },
}

/// What a number of `NAMES` stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum NameRecord {
    Boot([u8; 16]),
    Die([u32; 5]),
    Resource(String),
}

/// A write that waits for the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OutboxRow {
    pub(crate) created_utc_ns: i64,
    /// How often it was tried.
    pub(crate) tries: u32,
    /// Which object it changes, for example `pods/default/train-0`.
    pub(crate) target: String,
    /// Body of the merge patch.
    pub(crate) patch: Vec<u8>,
}
