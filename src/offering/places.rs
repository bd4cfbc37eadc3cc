//! From a chip and the mode to the places it is offered under.

use crate::domain::chip::Chip;
use crate::domain::family::ChipFamily;
use crate::domain::ids::{DieId, IdError, PhyId, PluginDeviceId, ResourceName, ShareSlot};
use crate::domain::product::Product;

use super::names::CustomNames;

/// Most shares of one chip, the vendor's limit.
pub const SHARES_MAX: u16 = 100;

/// Resource of a 310 under `FusionDirector`.
const FUSION_DIRECTOR_BASE: &str = "davinci-mini";

/// Product types that mixed insert tells apart, and what it adds to the names.
const KINDS: [(&str, &str); 3] = [
    ("Atlas 300V", "V"),
    ("Atlas 300V Pro", "VPro"),
    ("Atlas 300I Pro", "IPro"),
];

/// How chips are offered, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// 310 chips appear under the name that `FusionDirector` expects.
    pub fusion_director: bool,
    /// Containers that may share one chip; 1 offers whole chips.
    pub share_count: u16,
    /// 310P cards of different kinds appear under a resource each.
    pub mixed_insert: bool,
}

impl Default for Mode {
    fn default() -> Self {
        Self {
            fusion_director: false,
            share_count: 1,
            mixed_insert: false,
        }
    }
}

/// Settings that exclude each other, whatever the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModeError {
    /// Cannot be counted.
    #[error("share_count = {count}: 1 to {SHARES_MAX} are allowed")]
    ShareCount {
        /// As given.
        count: u16,
    },
    /// The vendor has no shares of mixed cards.
    #[error(
        "share_count = {count} and mixed_insert = true exclude each other: cards of different kinds are \
         offered whole; set one of them back"
    )]
    SharesOfMixedCards {
        /// As given.
        count: u16,
    },
    /// `FusionDirector` serves chips that cannot be shared.
    #[error(
        "share_count = {count} and fusion_director = true exclude each other: a 310 cannot be shared; \
         set one of them back"
    )]
    SharesForFusionDirector {
        /// As given.
        count: u16,
    },
}

/// A chip that the mode does not fit. It is not offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChipRefused {
    /// Sharing is for 310P and 310B.
    #[error(
        "chip {phy} ({die}) is a {product}, which cannot be shared: share_count = {count} is for 310P \
         and 310B; set it to 1"
    )]
    NotShared {
        /// Number.
        phy: PhyId,
        /// The chip.
        die: DieId,
        /// Its product.
        product: Product,
        /// As configured.
        count: u16,
    },
    /// Mixed insert knows three kinds of cards.
    #[error(
        "chip {phy} ({die}) is of product type {kind}: mixed_insert = true takes Atlas 300V, Atlas 300V \
         Pro and Atlas 300I Pro only; remove the card or set mixed_insert to false"
    )]
    NotMixed {
        /// Number.
        phy: PhyId,
        /// The chip.
        die: DieId,
        /// Product text, or the product where the driver gives no text.
        kind: String,
    },
    /// The names do not fit kubelet's rules.
    #[error("chip {phy} ({die}) cannot be named")]
    Name {
        /// Number.
        phy: PhyId,
        /// The chip.
        die: DieId,
        /// The rule.
        #[source]
        source: IdError,
    },
}

/// One id of a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipPlace {
    /// Resource it is offered under.
    pub resource: ResourceName,
    /// Kubelet's id.
    pub id: PluginDeviceId,
    /// The slot in share mode; `None` is the whole chip.
    pub share: Option<ShareSlot>,
}

/// How this node offers its chips.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offering {
    domain: String,
    mode: Mode,
    names: CustomNames,
}

impl Offering {
    /// `domain` is that of the resource names, `huawei.com` unless configured.
    ///
    /// # Errors
    /// When the settings exclude each other.
    pub fn new(
        domain: impl Into<String>,
        mode: Mode,
        names: CustomNames,
    ) -> Result<Self, ModeError> {
        let count = mode.share_count;
        if !(1..=SHARES_MAX).contains(&count) {
            return Err(ModeError::ShareCount { count });
        }
        if count > 1 && mode.mixed_insert {
            return Err(ModeError::SharesOfMixedCards { count });
        }
        if count > 1 && mode.fusion_director {
            return Err(ModeError::SharesForFusionDirector { count });
        }
        Ok(Self {
            domain: domain.into(),
            mode,
            names,
        })
    }

    /// Whole chips under the vendor's names.
    #[must_use]
    pub fn whole_chips(domain: impl Into<String>) -> Self {
        Self {
            domain: domain.into(),
            ..Self::default()
        }
    }

    /// Domain of the resource names that are not custom.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// How chips are offered, as configured.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Every id of a chip, one for a whole chip.
    ///
    /// # Errors
    /// When the mode does not fit the chip.
    pub fn places(&self, chip: &Chip) -> Result<Vec<ChipPlace>, ChipRefused> {
        let (phy, die) = (chip.phy, chip.die);
        let named = |source| ChipRefused::Name { phy, die, source };
        let kind = self.mixed_kind(chip)?;
        let (resource, mut base) = self.base(chip).map_err(named)?;
        let mut resource = resource;
        if let Some(kind) = kind {
            resource = ResourceName::new(format!("{resource}-{kind}")).map_err(named)?;
            base = format!("{base}-{kind}");
        }
        let ids: Vec<(PluginDeviceId, Option<ShareSlot>)> = if self.shares(chip)? {
            (0..self.mode.share_count)
                .map(ShareSlot)
                .map(|slot| (PluginDeviceId::share(&base, phy, slot), Some(slot)))
                .collect()
        } else {
            vec![(PluginDeviceId::whole_chip(&base, phy), None)]
        };
        Ok(ids
            .into_iter()
            .map(|(id, share)| ChipPlace {
                resource: resource.clone(),
                id,
                share,
            })
            .collect())
    }

    /// Whether this agent, in whatever mode and under the vendor's names or those given now, could have
    /// offered a chip under this id. For holders of whom only kubelet knows.
    #[must_use]
    pub fn may_name(&self, id: &PluginDeviceId, chip: &Chip) -> bool {
        let base = chip.family.base_name();
        let custom = self.names.of(base).map(|custom| custom.prefix.as_str());
        let bases = [Some(base), Some(FUSION_DIRECTOR_BASE), custom];
        bases.into_iter().flatten().any(|base| {
            let Some(rest) = id.as_str().strip_prefix(base) else {
                return false;
            };
            let number = format!("-{}", chip.phy);
            rest == number
                || (rest.starts_with(&number) && id.share_slot(chip.phy).is_some())
                || KINDS
                    .iter()
                    .any(|(_, kind)| rest == format!("-{kind}{number}"))
        })
    }

    /// Settings that do nothing on these chips, one line each, for the log.
    #[must_use]
    pub fn without_effect(&self, chips: &[Chip]) -> Vec<String> {
        let any = |wanted: &dyn Fn(&Chip) -> bool| chips.iter().any(wanted);
        let mut lines = Vec::new();
        let count = self.mode.share_count;
        if count > 1 && any(&|chip| !is_sharable(chip.family) && !is_unsharable(chip.family)) {
            lines.push(format!(
                "share_count = {count} has no effect on other chips than 310P and 310B: they are \
                 offered whole"
            ));
        }
        if self.mode.fusion_director && any(&|chip| chip.family != ChipFamily::Ascend310) {
            lines.push(
                "fusion_director = true has no effect on other chips than 310: they keep their names"
                    .to_owned(),
            );
        }
        for base in self.names.bases() {
            if !any(&|chip| chip.family.base_name() == base) {
                lines.push(format!(
                    "the custom name of {base} has no effect: no chip of this node has that type"
                ));
            } else if self.mode.fusion_director && base == ChipFamily::Ascend310.base_name() {
                lines.push(format!(
                    "the custom name of {base} has no effect: fusion_director = true names the chips \
                     {FUSION_DIRECTOR_BASE}"
                ));
            }
        }
        if !self.names.is_empty() && any(&|chip| chip.family == ChipFamily::Ascend950) {
            lines
                .push("custom names have no effect on A5: its chips are offered as npu".to_owned());
        }
        lines
    }

    fn base(&self, chip: &Chip) -> Result<(ResourceName, String), IdError> {
        let fusion_director = self.mode.fusion_director && chip.family == ChipFamily::Ascend310;
        let base = if fusion_director {
            FUSION_DIRECTOR_BASE
        } else {
            chip.family.base_name()
        };
        if let Some(custom) = self.names.of(base) {
            return Ok((custom.resource.clone(), custom.prefix.clone()));
        }
        let resource = ResourceName::new(format!("{}/{base}", self.domain))?;
        Ok((resource, base.to_owned()))
    }

    fn mixed_kind(&self, chip: &Chip) -> Result<Option<&'static str>, ChipRefused> {
        if !self.mode.mixed_insert {
            return Ok(None);
        }
        let text = chip.product_type.as_deref();
        let kind = KINDS.iter().find(|(product, _)| Some(*product) == text);
        match kind {
            Some((_, kind)) if chip.family == ChipFamily::Ascend310P => Ok(Some(kind)),
            Some(_) | None => Err(ChipRefused::NotMixed {
                phy: chip.phy,
                die: chip.die,
                kind: text.map_or_else(
                    || format!("unknown (a {} chip)", chip.product),
                    |text| format!("{text:?}"),
                ),
            }),
        }
    }

    /// Whether this chip is offered in shares.
    fn shares(&self, chip: &Chip) -> Result<bool, ChipRefused> {
        let count = self.mode.share_count;
        if count > 1 && is_unsharable(chip.family) {
            return Err(ChipRefused::NotShared {
                phy: chip.phy,
                die: chip.die,
                product: chip.product,
                count,
            });
        }
        Ok(count > 1 && is_sharable(chip.family))
    }
}

fn is_sharable(family: ChipFamily) -> bool {
    matches!(family, ChipFamily::Ascend310P | ChipFamily::Ascend310B)
}

/// On 310 the vendor's plugin refuses to share; on the families left it ignores the setting.
fn is_unsharable(family: ChipFamily) -> bool {
    family == ChipFamily::Ascend310
}

#[cfg(test)]
mod tests;
