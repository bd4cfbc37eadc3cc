//! A driver call as `libdcmi.so` sends it, and what the daemon answers.

use serde::{Deserialize, Serialize};

use super::{
    Address, Change, ChipCapacity, CreatedVdevice, Generation, NodeQuery, Quirks, ReturnCode,
    SuperPodPlace, VdeviceActivity, VdeviceAnswer,
};

/// One driver call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// Exported name, for fault rules and counters.
    pub symbol: String,
    /// What the call is about; `None` for calls about the whole node.
    pub unit: Option<Unit>,
    /// Boot the caller's tables were taken in; a call from an earlier boot is stale.
    pub boot: Option<String>,
    /// Code the library will return for reasons of its own once the call is let through.
    pub refuse: Option<ReturnCode>,
    /// What is asked.
    pub query: Query,
}

/// Hardware by its lasting slot number, which no renumbering touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A chip.
    Chip(usize),
    /// A whole card.
    Card(usize),
    /// The microcontroller of a card.
    Mcu(usize),
}

/// The question of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Query {
    /// Nothing but counters and fault rules; the library answers from its own tables.
    Pass,
    /// Numbers of this boot.
    Init,
    /// Version of the library.
    LibraryVersion,
    /// Version of the driver.
    DriverVersion,
    /// Text of a fault code.
    ErrorText(u32),
    /// Turn this connection into a stream of events.
    Subscribe(EventFilter),
    /// Next event for this process within so many milliseconds, -1 without limit.
    FaultEvent(i32, EventFilter),
    /// Something about a chip.
    Chip(ChipQuery),
    /// A setting of the node.
    Node(NodeQuery),
    /// A change.
    Change(Change),
}

/// A question about a chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChipQuery {
    /// Names and AI core count.
    ChipInfo,
    /// Board, PCB, BOM and slot ids.
    BoardInfo,
    /// Mainboard id.
    MainboardId,
    /// Chip identity of the given die type.
    DieId(u32),
    /// PCI ids and address.
    PcieInfo,
    /// Product name of an inference card.
    ProductType,
    /// Electronic label.
    Elabel,
    /// CPUs near the chip.
    Affinity,
    /// The card this one is paired with.
    Brother,
    /// Health level.
    Health,
    /// Active fault codes.
    ErrorCodes,
    /// Chip temperature.
    Temperature,
    /// Chip power.
    Power,
    /// Card power measured by the microcontroller.
    McuPower,
    /// Chip voltage.
    Voltage,
    /// Clock of the given type.
    Frequency(u32),
    /// Utilisation of the given type.
    Utilization(i32),
    /// AI core, vector core, both and NPU utilisation at once.
    MultiUtilization,
    /// High-bandwidth memory.
    Hbm,
    /// DDR memory.
    Memory,
    /// ECC counters of the given device type.
    Ecc(u32),
    /// Processes that hold the chip.
    Processes,
    /// Health of the network port.
    NetworkHealth,
    /// Address of the network port: type of port, its number, type of address.
    Address(u32, i32, u32),
    /// Kind of the link to the chip in that slot.
    Link(usize),
    /// The vNPU of that id.
    Vdevice(u32),
    /// What the chip has in all.
    CapacityTotal,
    /// What is left of it.
    CapacityFree,
    /// How busy the vNPU of that id is.
    VdeviceActivity(u32),
    /// Place in a super pod.
    SuperPod,
    /// Whether the machine's chips work as one system or several.
    WorkMode,
    /// How far the chip has come with starting.
    BootStatus,
    /// Whether the board's controller can be reached.
    OutbandChannel,
    /// Nothing, for a question this simulator knows but does not answer.
    NotSimulated,
}

/// Which events a caller wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventFilter {
    /// Bit 0 event id, bit 1 severity, bit 2 node type.
    pub flag: u64,
    /// Wanted event id.
    pub event_id: u32,
    /// Least severity wanted.
    pub severity: u8,
    /// Wanted node type.
    pub node_type: u8,
}

/// What the daemon sends back for a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallReply {
    /// The answer is held back on purpose; wait without limit.
    Hold,
    /// The answer.
    Done {
        /// Return code.
        code: ReturnCode,
        /// Value, absent unless the code is 0.
        answer: Option<Answer>,
        /// How the library is to misbehave while it hands the value over.
        #[serde(default)]
        quirks: Quirks,
    },
    /// One event on a subscribed connection.
    Event(EventRecord),
}

/// The value of an answered call. Lists of numbers are in the order of the C struct's fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Nothing besides success.
    Nothing,
    /// One number.
    Number(i64),
    /// Several numbers.
    Numbers(Vec<i64>),
    /// One text.
    Text(String),
    /// Names of a chip.
    Identity(Identity),
    /// Label texts: name, model, manufacturer, date, serial number.
    Label([String; 5]),
    /// Chip identity.
    Die([u32; 5]),
    /// ECC counters.
    Ecc(EccCounts),
    /// Holders of a chip.
    Processes(Vec<Process>),
    /// Address of a chip's network port.
    Address(Address),
    /// One event.
    Event(EventRecord),
    /// Events that reach the subscriber before its call returns.
    Events(Vec<EventRecord>),
    /// Numbers of this boot.
    Snapshot(Snapshot),
    /// A vNPU.
    Vdevice(VdeviceAnswer),
    /// What a chip has, or what is left of it.
    Capacity(ChipCapacity),
    /// How busy a vNPU is.
    Activity(VdeviceActivity),
    /// A vNPU just made.
    Created(CreatedVdevice),
    /// Place in a super pod.
    SuperPod(SuperPodPlace),
}

/// A refusal, as the code the library returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the driver answers {}", .0.0)]
pub struct Failure(pub ReturnCode);

/// Names of a chip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Brand, normally `Ascend`.
    pub chip_type: String,
    /// Chip name.
    pub chip_name: String,
    /// Chip version.
    pub chip_version: String,
    /// Name of the NPU inside.
    pub npu_name: String,
    /// AI cores.
    pub aicore_count: u32,
}

/// ECC counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EccCounts {
    /// 1 when ECC is on.
    pub enabled: i64,
    /// Single-bit, double-bit, total single, total double, isolated single, isolated double.
    pub counters: [i64; 6],
}

/// A process that holds a chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Host process id.
    pub pid: i32,
    /// Device memory in bytes.
    pub memory_bytes: u64,
}

/// One fault event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Slot number of the chip.
    pub chip: usize,
    /// Logic id of the chip in the driver's present numbering.
    pub logic: u32,
    /// Event id.
    pub event_id: u32,
    /// 0 recovered, 1 occurred, 2 one-off.
    pub assertion: u8,
    /// 0 suggestion to 3 critical.
    pub severity: u8,
    /// Kind of the failing node.
    pub node_type: u8,
    /// Serial number of the event.
    pub serial: i32,
    /// Milliseconds since the Unix epoch.
    pub raised_ms: u64,
    /// Short name.
    pub name: String,
}

/// Numbers of one boot, as `dcmi_init` collects them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Boot they were taken in.
    pub boot: String,
    /// Generation the chips answer.
    pub generation: Generation,
    /// Cards in ascending order of id; a card that failed to initialise has id -1 and no chips.
    pub cards: Vec<CardEntry>,
    /// Chips the driver sees, failed cards included.
    pub devices: u32,
}

/// A card in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardEntry {
    /// Card id, -1 if the card failed to initialise.
    pub id: i32,
    /// Slot number.
    pub slot: usize,
    /// A microcontroller follows the chips.
    pub mcu: bool,
    /// Chips by device id.
    pub chips: Vec<ChipEntry>,
}

/// A chip in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipEntry {
    /// Slot number.
    pub slot: usize,
    /// Device id in the card.
    pub device: i32,
    /// Logic id.
    pub logic: u32,
    /// Phy id.
    pub phy: u32,
}
