//! Kubelet's checkpoint file. An unreadable file is an error; a readable one tells only of resources
//! of the asked domain and of chips that were given.

#![no_main]

use ascend_agent::domain::kubelet_view::RecordScope;
use ascend_agent::kubelet::parse_checkpoint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(entries) = parse_checkpoint(bytes, &RecordScope::domain("huawei.com")) {
        for entry in entries {
            let gives_chips = !entry.device_nodes.is_empty() || entry.visible_devices.is_some();
            assert!(gives_chips || entry.resource.as_str().starts_with("huawei.com/"));
        }
    }
});
