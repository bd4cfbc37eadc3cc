//! Building the machine, and starting it anew.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Calls, Card, Chip, Cutting, Events, Hardware, Injection, Prepared, Product, ResetState,
    Settings,
};
use crate::profile::{ChipPlan, Profile, ProfileError};
use crate::wire::{ChipQuery, Query};

/// A vNPU's node is this text followed by its vdev id.
const VDEVICE_PREFIX: &str = "vdavinci";

impl Hardware {
    /// The machine of a profile, in its first boot.
    ///
    /// # Errors
    /// The profile does not describe a possible machine.
    pub(crate) fn build(profile: Profile, boot: String) -> Result<Self, ProfileError> {
        let plans = profile.plan_chips()?;
        let mut cards: Vec<Card> = Vec::new();
        let mut chips = Vec::with_capacity(plans.len());
        for plan in plans {
            let card = cards
                .iter()
                .position(|card| card.id == plan.card)
                .unwrap_or_else(|| {
                    cards.push(Card {
                        id: plan.card,
                        removed: false,
                        hidden: false,
                        init_fails: false,
                    });
                    cards.len() - 1
                });
            let kind = profile.kind(plan.like.as_deref());
            chips.push(Chip::new(plan, card, kind));
        }
        Ok(Self {
            settings: Settings::new(profile.reset.boot_ms),
            prepared: Prepared::default(),
            profile,
            boot,
            boots: 1,
            cards,
            chips,
            upgrading: false,
            replacements: 0,
            injection: Injection::default(),
            calls: Calls::default(),
            events: Events::default(),
        })
    }

    /// Id of the present boot.
    pub(crate) fn boot(&self) -> &str {
        &self.boot
    }

    /// Starts a new boot. What the memory of driver and firmware held is gone; what is true of
    /// the machine itself (removed, hidden, failing cards, serial numbers) stays.
    pub(crate) fn reboot(&mut self, boot: String) {
        self.boot = boot;
        self.boots = self.boots.saturating_add(1);
        self.upgrading = false;
        self.injection = Injection::default();
        self.events.forget_listeners();
        self.prepared.clear();
        for slot in 0..self.chips.len() {
            self.restart_vdevices(slot);
        }
        for chip in &mut self.chips {
            chip.lost = false;
            chip.hides_activity = false;
            chip.heal();
        }
    }

    /// Device nodes that exist now.
    pub(crate) fn nodes(&self) -> BTreeSet<String> {
        let prefix = &self.profile.nodes.chip_prefix;
        let chips = self
            .chips
            .iter()
            .enumerate()
            .filter(|(slot, chip)| self.is_enumerated(*slot) && chip.is_bound())
            .map(|(_, chip)| format!("{prefix}{}", chip.phy));
        let serves = |chip: &Chip| chip.answers(&Query::Chip(ChipQuery::Health));
        let vdevices = self
            .chips
            .iter()
            .enumerate()
            .filter(|(slot, chip)| self.is_enumerated(*slot) && serves(chip))
            .flat_map(|(_, chip)| chip.vdevices.iter())
            .map(|vdevice| format!("{VDEVICE_PREFIX}{}", vdevice.id));
        let shared = self.profile.shared_nodes().cloned();
        shared.chain(chips).chain(vdevices).collect()
    }

    /// PCI address and NUMA node of every chip that is on the bus.
    pub(crate) fn pci_devices(&self) -> Vec<(String, u32)> {
        let on_bus = |slot: usize| self.is_enumerated(slot);
        self.chips
            .iter()
            .enumerate()
            .filter(|(slot, chip)| on_bus(*slot) && chip.is_bound())
            .map(|(_, chip)| (chip.address(), chip.numa))
            .collect()
    }

    /// CPU list of each NUMA node.
    pub(crate) fn numa_cpus(&self) -> &[String] {
        &self.profile.numa_cpus
    }
}

impl Chip {
    fn new(plan: ChipPlan, card: usize, kind: &Profile) -> Self {
        let product = Product::of(&plan, kind);
        Self {
            product,
            cutting: Cutting::of(product, &plan, kind),
            card,
            device: plan.device,
            phy: plan.phy,
            logic_rank: plan.logic,
            serial: plan.serial,
            die: plan.die,
            bdf: plan.bdf,
            numa: plan.numa,
            like: plan.like,
            identity: plan.identity,
            board_id: plan.board_id,
            mainboard_id: plan.mainboard_id,
            product_type: plan.product_type,
            addresses: plan.addresses,
            lost: false,
            health: 0,
            codes: Vec::new(),
            processes: Vec::new(),
            fixed: BTreeMap::new(),
            vdevices: Vec::new(),
            hides_activity: false,
            reset: ResetState::new(&kind.reset.sticky),
        }
    }

    /// Nothing is wrong with the chip and nobody uses it.
    pub(super) fn heal(&mut self) {
        self.health = 0;
        self.codes.clear();
        self.processes.clear();
        self.fixed.clear();
        self.reset.heal();
    }

    /// PCI address as sysfs writes it.
    pub(super) fn address(&self) -> String {
        let [domain, bus, device, function] = self.bdf;
        format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}
