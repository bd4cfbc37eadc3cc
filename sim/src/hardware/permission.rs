//! Which calls the driver refuses to whom.

use super::Hardware;
use crate::wire::{Caller, Quirks};

/// Callers that may not call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// Those in a plain container.
    InContainer,
    /// Those in a plain container who are not root.
    UserInContainer,
}

/// Calls with a rule of their own; all others are open to everybody.
const RULES: &[(&str, Refused)] = &[
    ("dcmi_get_all_device_count", Refused::InContainer),
    ("dcmi_get_fault_event", Refused::UserInContainer),
    ("dcmi_get_netdev_brother_device", Refused::InContainer),
    ("dcmi_subscribe_fault_event", Refused::UserInContainer),
    ("dcmiv2_get_all_device_count", Refused::InContainer),
    ("dcmiv2_get_fault_event", Refused::UserInContainer),
    ("dcmiv2_subscribe_fault_event", Refused::UserInContainer),
];

impl Hardware {
    /// How the library is to misbehave.
    pub(crate) fn quirks(&self) -> Quirks {
        self.injection.quirks()
    }

    /// The driver refuses this call to its present callers.
    pub(super) fn is_forbidden(&self, symbol: &str) -> bool {
        let caller = self.injection.caller();
        RULES
            .iter()
            .filter(|(known, _)| *known == symbol)
            .any(|(_, refused)| match refused {
                Refused::InContainer => caller.is_in_plain_container(),
                Refused::UserInContainer => caller == Caller::ContainerUser,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::SYMBOLS;

    #[test]
    fn every_rule_is_about_an_exported_call() {
        for (symbol, _) in RULES {
            assert!(SYMBOLS.contains(symbol), "{symbol}");
        }
    }
}
