//! Between history events of the domain and their rows, with names replaced by numbers and back.

use redb::ReadableTable;

use super::fault::Fault;
use super::names::NameLookup;
use super::records::{
    Numbering, allocation_id, cause, cause_row, owner, owner_row, plugin_device_id,
};
use super::schema_1::{EventRecord, HistoryRow};
use crate::domain::fault::FaultCode;
use crate::domain::history::{HistoryEvent, HistoryRecord};
use crate::domain::ids::{CommitSequence, PhyId};
use crate::domain::time::Stamp;

/// The row of an event.
pub(super) fn history_row(
    at: Stamp,
    event: &HistoryEvent,
    numbering: &mut Numbering<'_, '_>,
) -> Result<HistoryRow, Fault> {
    Ok(HistoryRow {
        at: numbering.stamp(at)?,
        event: event_row(event, numbering)?,
    })
}

/// The record of a row.
pub(super) fn history_record<T: ReadableTable<u32, &'static [u8]>>(
    sequence: CommitSequence,
    row: HistoryRow,
    names: &mut NameLookup<T>,
) -> Result<HistoryRecord, Fault> {
    Ok(HistoryRecord {
        sequence,
        at: names.stamp(&row.at)?,
        event: event(row.event, names)?,
    })
}

fn event_row(event: &HistoryEvent, n: &mut Numbering<'_, '_>) -> Result<EventRecord, Fault> {
    Ok(match event {
        HistoryEvent::AgentStarted { version } => EventRecord::AgentStarted {
            version: version.clone(),
        },
        HistoryEvent::AgentStopped => EventRecord::AgentStopped,
        HistoryEvent::Granted { allocation } => EventRecord::Granted {
            allocation: n.allocation(allocation)?,
        },
        HistoryEvent::GrantRepeated {
            allocation,
            plugin_device_id,
            die,
        } => EventRecord::GrantRepeated {
            allocation: allocation.0.into_bytes(),
            plugin_device_id: plugin_device_id.as_str().to_owned(),
            die: n.die(*die)?,
        },
        HistoryEvent::Confirmed {
            allocation,
            die,
            owner,
        } => EventRecord::Confirmed {
            allocation: allocation.0.into_bytes(),
            die: n.die(*die)?,
            owner: owner_row(owner),
        },
        HistoryEvent::Adopted { allocation } => EventRecord::Adopted {
            allocation: n.allocation(allocation)?,
        },
        HistoryEvent::Released { allocation, cause } => EventRecord::Released {
            allocation: n.allocation(allocation)?,
            cause: cause_row(*cause),
        },
        HistoryEvent::Refused {
            resource,
            ids,
            reason,
        } => EventRecord::Refused {
            resource: n.resource(resource)?,
            ids: ids.clone(),
            reason: reason.clone(),
        },
        HistoryEvent::ChipAppeared {
            die,
            phy,
            chip_name,
        } => EventRecord::ChipAppeared {
            die: n.die(*die)?,
            phy: phy.0,
            chip_name: chip_name.clone(),
        },
        HistoryEvent::ChipMoved { die, from, to } => EventRecord::ChipMoved {
            die: n.die(*die)?,
            from: from.0,
            to: to.0,
        },
        HistoryEvent::ChipVanished { die, phy } => EventRecord::ChipVanished {
            die: n.die(*die)?,
            phy: phy.0,
        },
        HistoryEvent::ChipHealth {
            die,
            phy,
            healthy,
            reason,
            codes,
        } => EventRecord::ChipHealth {
            die: n.die(*die)?,
            phy: phy.0,
            healthy: *healthy,
            reason: reason.clone(),
            codes: codes.iter().map(|code| code.0).collect(),
        },
        HistoryEvent::StoreRebuilt { set_aside, damage } => EventRecord::StoreRebuilt {
            set_aside: set_aside.clone(),
            damage: damage.clone(),
        },
    })
}

fn event<T: ReadableTable<u32, &'static [u8]>>(
    row: EventRecord,
    names: &mut NameLookup<T>,
) -> Result<HistoryEvent, Fault> {
    Ok(match row {
        EventRecord::AgentStarted { version } => HistoryEvent::AgentStarted { version },
        EventRecord::AgentStopped => HistoryEvent::AgentStopped,
        EventRecord::Granted { allocation } => HistoryEvent::Granted {
            allocation: names.allocation(allocation)?,
        },
        EventRecord::GrantRepeated {
            allocation,
            plugin_device_id: id,
            die,
        } => HistoryEvent::GrantRepeated {
            allocation: allocation_id(allocation),
            plugin_device_id: plugin_device_id(id)?,
            die: names.die(die)?,
        },
        EventRecord::Confirmed {
            allocation,
            die,
            owner: row,
        } => HistoryEvent::Confirmed {
            allocation: allocation_id(allocation),
            die: names.die(die)?,
            owner: owner(row),
        },
        EventRecord::Adopted { allocation } => HistoryEvent::Adopted {
            allocation: names.allocation(allocation)?,
        },
        EventRecord::Released {
            allocation,
            cause: row,
        } => HistoryEvent::Released {
            allocation: names.allocation(allocation)?,
            cause: cause(row),
        },
        EventRecord::Refused {
            resource,
            ids,
            reason,
        } => HistoryEvent::Refused {
            resource: names.resource(resource)?,
            ids,
            reason,
        },
        EventRecord::ChipAppeared {
            die,
            phy,
            chip_name,
        } => HistoryEvent::ChipAppeared {
            die: names.die(die)?,
            phy: PhyId(phy),
            chip_name,
        },
        EventRecord::ChipMoved { die, from, to } => HistoryEvent::ChipMoved {
            die: names.die(die)?,
            from: PhyId(from),
            to: PhyId(to),
        },
        EventRecord::ChipVanished { die, phy } => HistoryEvent::ChipVanished {
            die: names.die(die)?,
            phy: PhyId(phy),
        },
        EventRecord::ChipHealth {
            die,
            phy,
            healthy,
            reason,
            codes,
        } => HistoryEvent::ChipHealth {
            die: names.die(die)?,
            phy: PhyId(phy),
            healthy,
            reason,
            codes: codes.into_iter().map(FaultCode).collect(),
        },
        EventRecord::StoreRebuilt { set_aside, damage } => {
            HistoryEvent::StoreRebuilt { set_aside, damage }
        }
    })
}
