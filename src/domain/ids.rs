//! Identifiers. Each kind of number has its own type, because mixing them up hands out the wrong chip.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Kubelet documents at most 63 characters for a device id of a plugin.
pub const PLUGIN_DEVICE_ID_MAX_BYTES: usize = 63;

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number_id! {
    /// DCMI's number of a board; sparse and possibly large (a slot or a PCI address). -1 in the
    /// driver's list marks a card that failed to initialise and is never stored here.
    CardId(i32)
}
number_id! {
    /// DCMI's number of a chip on its card.
    DeviceId(i32)
}
number_id! {
    /// Index of a chip in what this OS sees, valid for one driver initialisation.
    LogicId(u32)
}
number_id! {
    /// The N of `/dev/davinciN`; may move when cards are lost or added across a reboot.
    PhyId(u32)
}
number_id! {
    /// One of the equal parts by which the containers of a shared chip are counted, from 0. Sharing is in
    /// time: a slot has no cores or memory of its own.
    ShareSlot(u16)
}
number_id! {
    /// The N of `/dev/vdavinciN`: a vNPU, whose number is unique on its node.
    VdevId(u32)
}
number_id! {
    /// Position of a durable commit; orders everything, because clocks jump.
    CommitSequence(u64)
}

/// Lasting identity of a chip: the die serial, five words. The only chip key that is persisted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DieId(pub [u32; 5]);

impl DieId {
    /// True for the all-zero serial, which a driver gives when it could not read the die.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

impl fmt::Display for DieId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, word) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str("-")?;
            }
            write!(f, "{word:08X}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for DieId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DieId({self})")
    }
}

impl From<DieId> for String {
    fn from(die: DieId) -> Self {
        die.to_string()
    }
}

impl TryFrom<String> for DieId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl FromStr for DieId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let malformed = || IdError::DieId {
            text: text.chars().take(64).collect(),
        };
        let mut words = [0_u32; 5];
        let mut parts = text.split('-');
        for word in &mut words {
            let part = parts.next().ok_or_else(malformed)?;
            if part.len() != 8 {
                return Err(malformed());
            }
            *word = u32::from_str_radix(part, 16).map_err(|_| malformed())?;
        }
        match parts.next() {
            None => Ok(Self(words)),
            Some(_) => Err(malformed()),
        }
    }
}

/// The opaque string kubelet hands back in Allocate, for example `Ascend910-3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PluginDeviceId(String);

impl PluginDeviceId {
    /// Takes an id as kubelet sent it.
    ///
    /// # Errors
    /// When it is empty or longer than [`PLUGIN_DEVICE_ID_MAX_BYTES`].
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        if text.is_empty() || text.len() > PLUGIN_DEVICE_ID_MAX_BYTES {
            return Err(IdError::PluginDeviceIdLength { bytes: text.len() });
        }
        Ok(Self(text))
    }

    /// The id of a whole chip: `<base name>-<phy id>`.
    #[must_use]
    pub fn whole_chip(base_name: &str, phy: PhyId) -> Self {
        Self(format!("{base_name}-{phy}"))
    }

    /// The id of one share of a chip: `<base name>-<phy id>-<slot>`.
    #[must_use]
    pub fn share(base_name: &str, phy: PhyId, slot: ShareSlot) -> Self {
        Self(format!("{base_name}-{phy}-{slot}"))
    }

    /// The slot, when this is a share of the chip that had the number `phy` when the id was made; `None`
    /// for the id of a whole chip. Unambiguous because no base name ends like a number after a dash.
    #[must_use]
    pub fn share_slot(&self, phy: PhyId) -> Option<ShareSlot> {
        let (rest, slot) = split_number(&self.0)?;
        let (base, number) = split_number(rest)?;
        (number == phy.0 && !base.is_empty())
            .then(|| u16::try_from(slot).ok().map(ShareSlot))
            .flatten()
    }

    /// The number of the chip that an id of this agent stands for, whatever its base name.
    #[must_use]
    pub fn chip_number(&self) -> Option<PhyId> {
        let (rest, last) = split_number(&self.0)?;
        let number = split_number(rest).map_or(last, |(_, number)| number);
        Some(PhyId(number))
    }

    /// The text as kubelet knows it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `<rest>-<number>`, the number written as a program writes it.
fn split_number(text: &str) -> Option<(&str, u32)> {
    let (rest, digits) = text.rsplit_once('-')?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some((rest, number))
}

/// Whether a base name ends like a number after a dash, so that ids made from it could be read in two
/// ways.
#[must_use]
pub fn ends_like_an_id(base_name: &str) -> bool {
    base_name
        .rsplit_once('-')
        .is_some_and(|(_, tail)| tail.bytes().all(|byte| byte.is_ascii_digit()))
}

impl fmt::Display for PluginDeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An extended resource name such as `huawei.com/Ascend910`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceName(String);

impl ResourceName {
    /// Checks a name against kubelet's rule for extended resources.
    ///
    /// # Errors
    /// Names the rule that the text breaks.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        let refuse = |rule| IdError::ResourceName {
            text: text.chars().take(128).collect(),
            rule,
        };
        let Some((domain, name)) = text.split_once('/') else {
            return Err(refuse("it needs a domain, a slash and a name"));
        };
        if domain.contains("kubernetes.io") || domain.starts_with("requests.") {
            return Err(refuse("the domain is reserved for Kubernetes"));
        }
        // `requests.` is put in front by quota objects and must still fit.
        if domain.len() + "requests.".len() > 253 || !domain.split('.').all(is_dns_label) {
            return Err(refuse("the domain is not a DNS subdomain in lower case"));
        }
        if name.len() > 63 {
            return Err(refuse("the name is longer than 63 characters"));
        }
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        let bytes = name.as_bytes();
        if !bytes.iter().copied().all(inner)
            || !edge(bytes.first().copied())
            || !edge(bytes.last().copied())
        {
            return Err(refuse(
                "the name takes letters, digits and inner - _ . only",
            ));
        }
        Ok(Self(text))
    }

    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the slash.
    #[must_use]
    pub fn domain(&self) -> &str {
        self.0.split_once('/').map_or("", |(domain, _)| domain)
    }

    /// The part after the slash, which also names the plugin's socket.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0
            .split_once('/')
            .map_or(self.0.as_str(), |(_, name)| name)
    }
}

fn is_dns_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !label.is_empty()
        && label.len() <= 63
        && label.bytes().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ResourceName {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl From<ResourceName> for String {
    fn from(name: ResourceName) -> Self {
        name.0
    }
}

/// One record of one chip held by one container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AllocationId(pub Uuid);

impl fmt::Display for AllocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One answer to one container request; its chips share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrantId(pub Uuid);

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Text that is not the id it was taken for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not five groups of eight hexadecimal digits.
    #[error("die id {text:?} is not five groups of eight hexadecimal digits joined by '-'")]
    DieId {
        /// The text, cut to 64 characters.
        text: String,
    },
    /// Empty or too long.
    #[error("plugin device id of {bytes} bytes: 1 to 63 are allowed")]
    PluginDeviceIdLength {
        /// Its length.
        bytes: usize,
    },
    /// Breaks kubelet's rule for extended resources.
    #[error("resource name {text:?}: {rule}")]
    ResourceName {
        /// The text, cut to 128 characters.
        text: String,
        /// The rule it breaks.
        rule: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_die_id_reads_back_what_it_prints() {
        let die = DieId([0x1, 0xABCD_EF01, 0, u32::MAX, 7]);
        assert_eq!(
            die.to_string(),
            "00000001-ABCDEF01-00000000-FFFFFFFF-00000007"
        );
        assert_eq!(die.to_string().parse(), Ok(die));
    }

    #[test]
    fn refuses_a_die_id_with_missing_surplus_or_short_words() {
        for text in ["", "1-2-3-4-5", "00000001-00000001-00000001-00000001"] {
            assert!(text.parse::<DieId>().is_err(), "{text:?}");
        }
        let surplus = "00000001-00000001-00000001-00000001-00000001-00000001";
        assert!(surplus.parse::<DieId>().is_err());
    }

    #[test]
    fn accepts_the_resource_names_kubelet_accepts() {
        for text in [
            "huawei.com/Ascend910",
            "huawei.com/Ascend310P-2c.1cpu",
            "a.b/x",
        ] {
            assert!(ResourceName::new(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn refuses_the_resource_names_kubelet_refuses() {
        let long = format!("huawei.com/{}", "a".repeat(64));
        for text in [
            "Ascend910",
            "kubernetes.io/x",
            "requests.a.b/x",
            "huawei.com/a b",
            "H.com/x",
            &long,
        ] {
            assert!(ResourceName::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_share_is_told_from_a_whole_chip_by_its_number() {
        let id = |text: &str| PluginDeviceId::new(text).unwrap();
        assert_eq!(
            id("Ascend310P-3-0").share_slot(PhyId(3)),
            Some(ShareSlot(0))
        );
        for (text, phy) in [
            ("Ascend310P-3", 3),
            ("Ascend310P-3-0", 0),
            ("Ascend310P-03-0", 3),
            ("Ascend310P-3-00", 3),
            ("-3-0", 3),
            ("3-0", 3),
            ("Ascend310P-3-70000", 3),
            ("Ascend310P-2c.1cpu-101-0", 0),
            ("Ascend310P-3-", 3),
        ] {
            assert_eq!(id(text).share_slot(PhyId(phy)), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_id_this_agent_makes_is_read_as_what_it_is(
            base in "[a-zA-Z][a-zA-Z0-9-]{1,15}", phy in 0_u32..4096, slot in 0_u16..100
        ) {
            proptest::prop_assume!(!ends_like_an_id(&base));
            let (phy, slot) = (PhyId(phy), ShareSlot(slot));
            let whole = PluginDeviceId::whole_chip(&base, phy);
            let share = PluginDeviceId::share(&base, phy, slot);
            proptest::prop_assert_eq!(whole.share_slot(phy), None);
            proptest::prop_assert_eq!(share.share_slot(phy), Some(slot));
            proptest::prop_assert_eq!(whole.chip_number(), Some(phy));
            proptest::prop_assert_eq!(share.chip_number(), Some(phy));
        }
    }

    #[test]
    fn refuses_an_empty_and_an_oversized_plugin_device_id() {
        assert!(PluginDeviceId::new("").is_err());
        assert!(PluginDeviceId::new("x".repeat(64)).is_err());
        assert!(PluginDeviceId::new("x".repeat(63)).is_ok());
    }
}
