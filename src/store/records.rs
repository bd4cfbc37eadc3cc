//! Between the nouns of the domain and the stored rows of the newest schema. A row that is no noun
//! (an impossible id or name) is damage, found here.

use redb::{ReadableTable, Table};
use uuid::Uuid;

use super::codec::CodecError;
use super::fault::Fault;
use super::names::{NameLookup, Names};
use super::schema_1::{
    AllocationRow, ChipRow, FamilyRecord, HeldRow, NameRecord, OriginRecord, OwnerRecord, PastRow,
    PciRecord, ReleaseCauseRecord, StampRecord,
};
use crate::domain::allocation::{Allocation, Origin, Owner, ReleaseCause};
use crate::domain::chip::{Chip, PciAddress};
use crate::domain::family::ChipFamily;
use crate::domain::ids::{
    AllocationId, CardId, DeviceId, DieId, GrantId, LogicId, PhyId, PluginDeviceId, ResourceName,
};
use crate::domain::product::{Product, ProductFacts};
use crate::domain::time::{BootId, BootTime, Stamp};
use crate::ports::ChipRecord;

/// The name numbers of a write transaction.
pub(super) struct Numbering<'a, 'txn> {
    pub(super) names: &'a mut Names,
    pub(super) table: Table<'txn, u32, &'static [u8]>,
}

impl Numbering<'_, '_> {
    pub(super) fn die(&mut self, die: DieId) -> Result<u32, Fault> {
        self.names.number(&mut self.table, NameRecord::Die(die.0))
    }

    pub(super) fn resource(&mut self, resource: &ResourceName) -> Result<u32, Fault> {
        let name = NameRecord::Resource(resource.as_str().to_owned());
        self.names.number(&mut self.table, name)
    }

    pub(super) fn stamp(&mut self, stamp: Stamp) -> Result<StampRecord<u32>, Fault> {
        let boot = NameRecord::Boot(stamp.boot_id.0.into_bytes());
        Ok(StampRecord {
            boot: self.names.number(&mut self.table, boot)?,
            boot_time_ns: stamp.boot_time.0,
            utc_ns: stamp.utc_ns,
        })
    }

    pub(super) fn allocation(&mut self, allocation: &Allocation) -> Result<PastRow, Fault> {
        Ok(row(
            allocation,
            self.resource(&allocation.resource)?,
            self.die(allocation.die)?,
            self.stamp(allocation.granted)?,
        ))
    }
}

impl<T: ReadableTable<u32, &'static [u8]>> NameLookup<T> {
    pub(super) fn die(&mut self, number: u32) -> Result<DieId, Fault> {
        match self.name(number)? {
            NameRecord::Die(words) => Ok(DieId(words)),
            NameRecord::Boot(_) | NameRecord::Resource(_) => Err(wrong_name(number, "die")),
        }
    }

    pub(super) fn resource(&mut self, number: u32) -> Result<ResourceName, Fault> {
        match self.name(number)? {
            NameRecord::Resource(text) => resource_name(text),
            NameRecord::Boot(_) | NameRecord::Die(_) => Err(wrong_name(number, "resource")),
        }
    }

    pub(super) fn stamp(&mut self, row: &StampRecord<u32>) -> Result<Stamp, Fault> {
        match self.name(row.boot)? {
            NameRecord::Boot(boot) => Ok(stamp(boot, row.boot_time_ns, row.utc_ns)),
            NameRecord::Die(_) | NameRecord::Resource(_) => Err(wrong_name(row.boot, "boot")),
        }
    }

    pub(super) fn allocation(&mut self, row: PastRow) -> Result<Allocation, Fault> {
        let resource = self.resource(row.resource)?;
        let die = self.die(row.die)?;
        let granted = self.stamp(&row.granted)?;
        allocation(row, resource, die, granted)
    }
}

pub(super) fn die_key(die: DieId) -> [u8; 20] {
    let mut key = [0; 20];
    for (place, word) in key.chunks_exact_mut(4).zip(die.0) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    key
}

pub(super) fn held_row(held: &Allocation) -> HeldRow {
    row(
        held,
        held.resource.as_str().to_owned(),
        held.die.0,
        stamp_row(held.granted),
    )
}

pub(super) fn held(row: HeldRow) -> Result<Allocation, Fault> {
    let resource = resource_name(row.resource.clone())?;
    let die = DieId(row.die);
    let granted = stamp(
        row.granted.boot,
        row.granted.boot_time_ns,
        row.granted.utc_ns,
    );
    allocation(row, resource, die, granted)
}

pub(super) fn chip_row(record: &ChipRecord) -> ChipRow {
    let chip = &record.chip;
    ChipRow {
        die: chip.die.0,
        card: chip.card.0,
        device: chip.device.0,
        logic: chip.logic.0,
        phy: chip.phy.0,
        family: family_row(chip.family),
        chip_name: chip.chip_name.clone(),
        ai_cores: chip.ai_cores,
        board_id: chip.board_id,
        pci: chip.pci.map(|pci| PciRecord {
            domain: pci.domain,
            bus: pci.bus,
            device: pci.device,
            function: pci.function,
        }),
        numa_nodes: chip.numa_nodes.iter().copied().collect(),
        product_type: chip.product_type.clone(),
        seen: stamp_row(record.seen),
        present: record.present,
    }
}

pub(super) fn chip(row: ChipRow) -> ChipRecord {
    ChipRecord {
        seen: stamp(row.seen.boot, row.seen.boot_time_ns, row.seen.utc_ns),
        present: row.present,
        chip: Chip {
            die: DieId(row.die),
            card: CardId(row.card),
            device: DeviceId(row.device),
            logic: LogicId(row.logic),
            phy: PhyId(row.phy),
            family: family(row.family),
            product: Product::detect(&ProductFacts {
                family: family(row.family),
                board_id: row.board_id,
                mainboard_id: None,
                product_type: row.product_type.as_deref(),
                super_pod_type: None,
                chips_on_card: 1,
                chips_on_node: 1,
            }),
            chip_name: row.chip_name,
            ai_cores: row.ai_cores,
            board_id: row.board_id,
            mainboard_id: None,
            super_pod_type: None,
            pci: row.pci.map(|pci| PciAddress {
                domain: pci.domain,
                bus: pci.bus,
                device: pci.device,
                function: pci.function,
            }),
            numa_nodes: row.numa_nodes.into_iter().collect(),
            product_type: row.product_type,
        },
    }
}

pub(super) fn owner_row(owner: &Owner) -> OwnerRecord {
    OwnerRecord {
        pod_uid: owner.pod_uid.clone(),
        namespace: owner.namespace.clone(),
        pod: owner.pod.clone(),
        container: owner.container.clone(),
    }
}

pub(super) fn owner(row: OwnerRecord) -> Owner {
    Owner {
        pod_uid: row.pod_uid,
        namespace: row.namespace,
        pod: row.pod,
        container: row.container,
    }
}

pub(super) fn cause_row(cause: ReleaseCause) -> ReleaseCauseRecord {
    match cause {
        ReleaseCause::ProvenGone => ReleaseCauseRecord::ProvenGone,
        ReleaseCause::GrantedAgain => ReleaseCauseRecord::GrantedAgain,
        ReleaseCause::OwnerMoved => ReleaseCauseRecord::OwnerMoved,
    }
}

pub(super) fn cause(row: ReleaseCauseRecord) -> ReleaseCause {
    match row {
        ReleaseCauseRecord::ProvenGone => ReleaseCause::ProvenGone,
        ReleaseCauseRecord::GrantedAgain => ReleaseCause::GrantedAgain,
        ReleaseCauseRecord::OwnerMoved => ReleaseCause::OwnerMoved,
    }
}

pub(super) fn plugin_device_id(text: String) -> Result<PluginDeviceId, Fault> {
    Ok(
        PluginDeviceId::new(text).map_err(|error| CodecError::Value {
            what: error.to_string(),
        })?,
    )
}

pub(super) fn allocation_id(bytes: [u8; 16]) -> AllocationId {
    AllocationId(Uuid::from_bytes(bytes))
}

fn row<B, D, R>(
    allocation: &Allocation,
    resource: R,
    die: D,
    granted: StampRecord<B>,
) -> AllocationRow<B, D, R> {
    AllocationRow {
        id: allocation.id.0.into_bytes(),
        grant: allocation.grant.0.into_bytes(),
        resource,
        plugin_device_id: allocation.plugin_device_id.as_str().to_owned(),
        die,
        phy: allocation.phy.0,
        origin: match allocation.origin {
            Origin::Granted => OriginRecord::Granted,
            Origin::Adopted => OriginRecord::Adopted,
        },
        granted,
        confirmed: allocation.confirmed,
        owner: owner_row(&allocation.owner),
    }
}

fn allocation<B, D, R>(
    row: AllocationRow<B, D, R>,
    resource: ResourceName,
    die: DieId,
    granted: Stamp,
) -> Result<Allocation, Fault> {
    Ok(Allocation {
        id: allocation_id(row.id),
        grant: GrantId(Uuid::from_bytes(row.grant)),
        resource,
        plugin_device_id: plugin_device_id(row.plugin_device_id)?,
        die,
        phy: PhyId(row.phy),
        origin: match row.origin {
            OriginRecord::Granted => Origin::Granted,
            OriginRecord::Adopted => Origin::Adopted,
        },
        granted,
        confirmed: row.confirmed,
        owner: owner(row.owner),
    })
}

fn stamp_row(stamp: Stamp) -> StampRecord<[u8; 16]> {
    StampRecord {
        boot: stamp.boot_id.0.into_bytes(),
        boot_time_ns: stamp.boot_time.0,
        utc_ns: stamp.utc_ns,
    }
}

fn stamp(boot: [u8; 16], boot_time_ns: u64, utc_ns: i64) -> Stamp {
    Stamp {
        boot_id: BootId(Uuid::from_bytes(boot)),
        boot_time: BootTime(boot_time_ns),
        utc_ns,
    }
}

fn resource_name(text: String) -> Result<ResourceName, Fault> {
    Ok(ResourceName::new(text).map_err(|error| CodecError::Value {
        what: error.to_string(),
    })?)
}

fn wrong_name(number: u32, wanted: &str) -> Fault {
    Fault::Damage(format!("name {number} is not a {wanted}"))
}

fn family_row(family: ChipFamily) -> FamilyRecord {
    match family {
        ChipFamily::Ascend310 => FamilyRecord::Ascend310,
        ChipFamily::Ascend310B => FamilyRecord::Ascend310B,
        ChipFamily::Ascend310P => FamilyRecord::Ascend310P,
        ChipFamily::Ascend910 => FamilyRecord::Ascend910,
        ChipFamily::Ascend910B => FamilyRecord::Ascend910B,
        ChipFamily::Ascend910A3 => FamilyRecord::Ascend910A3,
        ChipFamily::Ascend950 => FamilyRecord::Ascend950,
    }
}

fn family(row: FamilyRecord) -> ChipFamily {
    match row {
        FamilyRecord::Ascend310 => ChipFamily::Ascend310,
        FamilyRecord::Ascend310B => ChipFamily::Ascend310B,
        FamilyRecord::Ascend310P => ChipFamily::Ascend310P,
        FamilyRecord::Ascend910 => ChipFamily::Ascend910,
        FamilyRecord::Ascend910B => ChipFamily::Ascend910B,
        FamilyRecord::Ascend910A3 => ChipFamily::Ascend910A3,
        FamilyRecord::Ascend950 => ChipFamily::Ascend950,
    }
}
