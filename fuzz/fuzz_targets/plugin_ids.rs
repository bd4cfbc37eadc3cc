//! Texts that kubelet, the driver or an operator hand in as ids and names.

#![no_main]

use ascend_agent::domain::ids::{DieId, PLUGIN_DEVICE_ID_MAX_BYTES, PluginDeviceId, ResourceName};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(die) = text.parse::<DieId>() {
        assert_eq!(
            die.to_string().parse(),
            Ok(die),
            "a die id reads back what it prints"
        );
    }
    match PluginDeviceId::new(text) {
        Ok(id) => assert_eq!(id.as_str(), text, "kubelet gets back what it sent"),
        Err(_) => assert!(text.is_empty() || text.len() > PLUGIN_DEVICE_ID_MAX_BYTES),
    }
    if let Ok(name) = ResourceName::new(text) {
        assert_eq!(name.as_str(), text);
        // It becomes part of a socket's path.
        assert!(!name.short().is_empty() && !name.short().contains(['/', '\0']));
        assert_ne!(name.short(), "..");
    }
});
