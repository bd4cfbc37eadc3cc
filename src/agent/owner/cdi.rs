//! The CDI spec, kept as the chips and the host are.

use std::time::Duration;

use crate::domain::causes::with_causes;
use crate::domain::time::BootTime;
use crate::files::SpecFile;
use crate::injection::{CdiContents, CdiSpec, DeliveryChoice, cdi_spec};
use crate::ports::{Clock, Ids, Journal, KubeletRecords};

use super::super::host_paths::look;
use super::{Owner, OwnerSettings};

/// Pause between two looks at a file that was right: somebody may remove it.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The file and whether it can be relied on.
#[derive(Debug)]
pub(super) struct SpecState {
    file: SpecFile,
    /// What the file says, and since when that is known.
    current: Option<(CdiSpec, BootTime)>,
    trouble: Option<String>,
}

impl SpecState {
    /// `None` unless containers get their chips by name.
    pub(super) fn of(settings: &OwnerSettings) -> Option<Self> {
        let delivery = &settings.delivery;
        (delivery.choice == DeliveryChoice::Cdi).then(|| Self {
            file: SpecFile::new(settings.cdi_dir.join(delivery.cdi_kind.file_name())),
            current: None,
            trouble: Some("the CDI spec is not written yet".to_owned()),
        })
    }
}

impl<J: Journal, R: KubeletRecords, C: Clock, I: Ids> Owner<J, R, C, I> {
    /// Why containers could not be given their chips by name now.
    pub(super) fn cdi_trouble(&self) -> Option<&str> {
        self.cdi.as_ref()?.trouble.as_deref()
    }

    /// Writes the spec where it differs from what chips and host demand. A chip that the driver no
    /// longer lists keeps its name, because its container may be started again.
    pub(super) async fn refresh_cdi(&mut self) {
        let now = self.now();
        let Some(state) = &mut self.cdi else { return };
        let delivery = &self.settings.delivery;
        let known = self.ledger.chips().values();
        let any_present = known.clone().any(|entry| entry.present);
        let contents = CdiContents {
            chips: known.clone().map(|entry| entry.chip.phy).collect(),
            // The nodes of a product that was taken out are not waited for.
            products: known
                .filter(|entry| entry.present || !any_present)
                .map(|entry| entry.chip.product)
                .collect(),
            ..CdiContents::default()
        };
        if contents.is_empty() {
            return;
        }
        let host = look(&contents.wanted(delivery));
        let made = match cdi_spec(delivery, &contents, &host) {
            Ok(spec) => {
                let known = state.current.as_ref().is_some_and(|(current, seen)| {
                    *current == spec && now.since(*seen) < LOOK_AGAIN
                });
                if known && state.trouble.is_none() {
                    return;
                }
                let put = state.file.put(&spec).await;
                put.map(|written| (spec, written))
                    .map_err(|error| with_causes(&error))
            }
            Err(error) => Err(error.to_string()),
        };
        let trouble = match made {
            Ok((spec, written)) => {
                if written {
                    tracing::info!(path = %state.file.path().display(), chips = contents.chips.len(), "CDI spec written");
                }
                state.current = Some((spec, now));
                None
            }
            Err(cause) => Some(format!("the CDI spec is not in its place: {cause}")),
        };
        if trouble != state.trouble {
            if let Some(trouble) = &trouble {
                tracing::error!(trouble, "no chip is granted");
            }
            state.trouble = trouble;
        }
    }
}
