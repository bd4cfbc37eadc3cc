//! Comparing with kubelet's records.

use crate::ledger::{Findings, ObserveContext};
use crate::ports::{
    Batch, CensusError, Clock, GenerationCause, Ids, Journal, KubeletRecords, KubeletViews,
};

use super::Owner;

impl<J: Journal, R: KubeletRecords, C: Clock, I: Ids> Owner<J, R, C, I> {
    pub(super) async fn begin_generation(&mut self, cause: GenerationCause, views: KubeletViews) {
        tracing::info!(?cause, "a registration begins");
        if cause == GenerationCause::KubeletRestart {
            self.ledger.kubelet_restarted();
        }
        self.observe(views).await;
    }

    pub(super) async fn observe(&mut self, views: KubeletViews) {
        let census = self.usable_census(views.census.as_ref());
        let checkpoint = match &views.checkpoint {
            Ok(file) => Some(file.as_ref()),
            Err(error) => {
                tracing::warn!(%error, "kubelet's checkpoint proves nothing now");
                None
            }
        };
        let context = ObserveContext {
            scope: &views.scope,
            offering: &self.settings.offering,
            at: self.clock.now(),
            proof: self.settings.owner_proof,
            census: if census {
                views.census.as_ref().and_then(|view| view.as_ref().ok())
            } else {
                None
            },
            checkpoint,
            checkpoint_before: views.checkpoint_before,
            processes: &self.processes,
        };
        let ids = &self.ids;
        let findings = self
            .ledger
            .observe(&context, || (ids.allocation(), ids.grant()));
        self.settle(findings).await;
    }

    /// Notes whether pod-resources can be had at all, once per change.
    fn usable_census(
        &mut self,
        census: Option<&Result<crate::domain::kubelet_view::PodCensus, CensusError>>,
    ) -> bool {
        let Some(census) = census else { return false };
        let usable = census.is_ok();
        if let Err(error) = census
            && self.pod_resources != Some(false)
        {
            tracing::warn!(
                %error,
                "holders cannot be told from pod-resources; a chip granted twice by kubelet may go \
                 unnoticed, and no holder is proven gone, until it answers"
            );
        } else if usable && self.pod_resources == Some(false) {
            tracing::info!("pod-resources answers again");
        }
        self.pod_resources = Some(usable);
        usable
    }

    /// Good news (a chip is free) is stored before it is applied; holders are taken on even when the
    /// store refuses.
    async fn settle(&mut self, findings: Findings) {
        for line in &findings.unplaced {
            tracing::warn!(
                holder = line,
                "kubelet names a holder of a chip that cannot be found"
            );
        }
        if findings.refresh {
            self.refresh += 1;
        }
        let (put, remove, events) = self.ledger.findings_to_batch(&findings);
        if findings.is_quiet() && put.is_empty() {
            return;
        }
        let at = self.clock.now();
        let batch = Batch {
            put,
            remove,
            history: events.into_iter().map(|event| (at, event)).collect(),
            ..Batch::default()
        };
        let durable = self.commit(batch).await.is_ok();
        for record in &findings.adopted {
            tracing::warn!(
                plugin_device_id = %record.plugin_device_id,
                die_id = %record.die,
                owner = %record.owner,
                "holder adopted from kubelet's records"
            );
        }
        for id in findings.released.iter().filter(|_| durable) {
            if let Some(record) = self.ledger.record(*id) {
                tracing::info!(
                    allocation_id = %id,
                    plugin_device_id = %record.plugin_device_id,
                    owner = %record.owner,
                    "chip free: its holder is proven gone"
                );
            }
        }
        self.ledger.apply_findings(&findings, durable, at.boot_time);
    }
}
