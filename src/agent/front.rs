//! The owner's door: what kubelet's side and operators call. Holds no state of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::domain::history::HistoryRecord;
use crate::domain::ids::{PluginDeviceId, ResourceName};
use crate::domain::kubelet_view::{CheckpointVersion, CheckpointView, RecordScope};
use crate::domain::offer::{Injection, Offer, Refusal};
use crate::domain::status::{RegistrationStatus, StatusDocument};
use crate::kubelet::KubeletStatus;
use crate::ports::{
    Administration, AdministrationError, Allocations, GenerationCause, HistoryQuery, Journal,
    KubeletRecords, KubeletViews,
};

use super::command::{AllocateReply, Command, Evidence};

/// Kubelet waits for Allocate without a deadline of its own and does nothing else meanwhile.
const ALLOCATE_BUDGET: Duration = Duration::from_secs(10);

/// Longest wait for the list of a new registration; an older list is better than none.
const GENERATION_BUDGET: Duration = Duration::from_secs(2);

/// Kubelet writes its checkpoint within milliseconds of receiving a list.
const CHECKPOINT_BUDGET: Duration = Duration::from_secs(1);
const CHECKPOINT_LOOK: Duration = Duration::from_millis(5);

const OPERATOR_BUDGET: Duration = Duration::from_secs(5);

/// A cheap handle; every clone speaks to the same owner task.
#[derive(Debug)]
pub(super) struct Front<R, J> {
    shared: Arc<Shared<R, J>>,
}

#[derive(Debug)]
struct Shared<R, J> {
    commands: mpsc::Sender<Command>,
    offers: watch::Receiver<Arc<Offer>>,
    records: Arc<R>,
    journal: Arc<J>,
    domain: String,
    checkpoint_hint: Notify,
    grant_hint: Notify,
    registrations: watch::Receiver<KubeletStatus>,
}

impl<R, J> Clone for Front<R, J> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<R: KubeletRecords, J: Journal> Front<R, J> {
    pub(super) fn new(
        commands: mpsc::Sender<Command>,
        offers: watch::Receiver<Arc<Offer>>,
        records: Arc<R>,
        journal: Arc<J>,
        domain: String,
        registrations: watch::Receiver<KubeletStatus>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                commands,
                offers,
                records,
                journal,
                domain,
                checkpoint_hint: Notify::new(),
                grant_hint: Notify::new(),
                registrations,
            }),
        }
    }

    /// Returns when kubelet wrote its checkpoint anew.
    pub(super) async fn checkpoint_hint(&self) {
        self.shared.checkpoint_hint.notified().await;
    }

    /// Returns when something was granted.
    pub(super) async fn grant_hint(&self) {
        self.shared.grant_hint.notified().await;
    }

    /// Looks at both of kubelet's records.
    pub(super) async fn views(&self) -> KubeletViews {
        let records = &self.shared.records;
        let scope = self.scope();
        let checkpoint_before = records.checkpoint_version();
        let census = records.census(&scope).await;
        let checkpoint = records.checkpoint(&scope).await;
        KubeletViews {
            scope,
            census: Some(census),
            checkpoint,
            checkpoint_before,
        }
    }

    /// Looks at the checkpoint alone.
    pub(super) async fn checkpoint_view(&self) -> KubeletViews {
        let scope = self.scope();
        let checkpoint = self.shared.records.checkpoint(&scope).await;
        KubeletViews {
            scope,
            census: None,
            checkpoint,
            checkpoint_before: None,
        }
    }

    /// Every name in the list, held ones among them; what is held never leaves the list.
    fn scope(&self) -> RecordScope {
        RecordScope {
            domain: self.shared.domain.clone(),
            names: self
                .shared
                .offers
                .borrow()
                .resources
                .keys()
                .cloned()
                .collect(),
        }
    }

    /// Tells the owner; false once it is gone.
    pub(super) async fn tell(&self, command: Command) -> bool {
        self.shared.commands.send(command).await.is_ok()
    }

    async fn ask<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        if !self.tell(make(reply)).await {
            return None;
        }
        answer.await.ok()
    }

    async fn decide(&self, resource: ResourceName, ids: Vec<PluginDeviceId>) -> Decided {
        let before = self.shared.records.checkpoint_version();
        let mut asked = Evidence::default();
        loop {
            let reply = self
                .ask(|reply| Command::Allocate {
                    resource: resource.clone(),
                    ids: ids.clone(),
                    asked: asked.clone(),
                    reply,
                })
                .await;
            match reply {
                Some(AllocateReply::Done(result)) => return result,
                Some(AllocateReply::AskKubelet) if asked.census.is_none() => {
                    asked.census = Some(self.shared.records.census(&self.scope()).await);
                }
                Some(AllocateReply::AskCheckpoint) if asked.written.is_none() => {
                    asked.written = Some(self.written_after(before).await);
                }
                Some(AllocateReply::AskKubelet | AllocateReply::AskCheckpoint) | None => {
                    return Err(stopping());
                }
            }
        }
    }

    /// The checkpoint once it is another one than `before`.
    async fn written_after(
        &self,
        before: Option<CheckpointVersion>,
    ) -> Result<CheckpointView, String> {
        let records = &self.shared.records;
        let scope = self.scope();
        let written = async {
            loop {
                if records.checkpoint_version() != before {
                    return records.checkpoint(&scope).await;
                }
                sleep(CHECKPOINT_LOOK).await;
            }
        };
        match timeout(CHECKPOINT_BUDGET, written).await {
            Ok(Ok(Some(view))) => Ok(view),
            Ok(Ok(None)) => Err("kubelet has no checkpoint".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!(
                "kubelet wrote no checkpoint within {CHECKPOINT_BUDGET:?}"
            )),
        }
    }
}

type Decided = Result<Injection, Refusal>;

fn stopping() -> Refusal {
    Refusal::NotReady {
        cause: "it is stopping".to_owned(),
    }
}

impl<R: KubeletRecords, J: Journal> Allocations for Front<R, J> {
    fn offers(&self) -> watch::Receiver<Arc<Offer>> {
        self.shared.offers.clone()
    }

    async fn begin_generation(&self, cause: GenerationCause) {
        let work = async {
            let views = self.views().await;
            self.ask(|reply| Command::BeginGeneration {
                cause,
                views,
                reply,
            })
            .await
        };
        if timeout(GENERATION_BUDGET, work).await.is_err() {
            tracing::warn!(
                ?cause,
                "kubelet's records were not compared in time; registering with the last list"
            );
        }
    }

    async fn allocate(&self, resource: ResourceName, ids: Vec<PluginDeviceId>) -> Decided {
        let decided = timeout(ALLOCATE_BUDGET, self.decide(resource, ids)).await;
        self.shared.grant_hint.notify_one();
        decided.unwrap_or_else(|_| {
            let cause = format!("no decision within {ALLOCATE_BUDGET:?}");
            Err(Refusal::NotReady { cause })
        })
    }

    async fn preferred(
        &self,
        resource: ResourceName,
        available: Vec<PluginDeviceId>,
        must_include: Vec<PluginDeviceId>,
        size: usize,
    ) -> Result<Vec<PluginDeviceId>, Refusal> {
        let answer = self.ask(|reply| Command::Preferred {
            resource,
            available,
            must_include,
            size,
            reply,
        });
        // The answer is a hint: none is better than a late one.
        match timeout(GENERATION_BUDGET, answer).await {
            Ok(answer) => answer.ok_or_else(stopping),
            Err(_) => Ok(Vec::new()),
        }
    }

    fn checkpoint_changed(&self) {
        self.shared.checkpoint_hint.notify_one();
    }

    fn list_delivered(&self, resource: &ResourceName, version: u64) {
        tracing::debug!(%resource, version, "list handed to kubelet");
    }
}

impl<R: KubeletRecords, J: Journal> Administration for Front<R, J> {
    async fn status(&self) -> Result<StatusDocument, AdministrationError> {
        let answer = timeout(OPERATOR_BUDGET, self.ask(|reply| Command::Status { reply })).await;
        let mut document = answer.ok().flatten().ok_or(AdministrationError::NoAnswer {
            within: OPERATOR_BUDGET,
        })?;
        add_registrations(&mut document, &self.shared.registrations.borrow());
        document.ready = document.shortcomings.is_empty();
        Ok(document)
    }

    async fn history(
        &self,
        query: HistoryQuery,
    ) -> Result<Vec<HistoryRecord>, AdministrationError> {
        Ok(self.shared.journal.history(query).await?)
    }

    async fn backup(&self, to: PathBuf) -> Result<u64, AdministrationError> {
        Ok(self.shared.journal.backup(to).await?)
    }
}

fn add_registrations(document: &mut StatusDocument, kubelet: &KubeletStatus) {
    document
        .shortcomings
        .extend(kubelet.directory_problem.clone());
    if !kubelet.kubelet_seen {
        document
            .shortcomings
            .push("kubelet's registry socket is not there".to_owned());
    }
    if kubelet.resources.is_empty() {
        document
            .shortcomings
            .push("nothing is registered with kubelet yet".to_owned());
    }
    for (resource, status) in &kubelet.resources {
        let trouble = status.last_error.clone().unwrap_or_default();
        if status.delivered_version.is_none() {
            let cause = if trouble.is_empty() {
                "not yet"
            } else {
                &trouble
            };
            document.shortcomings.push(format!(
                "{resource} is not registered with kubelet: {cause}"
            ));
        }
        document.kubelet.insert(
            resource.to_string(),
            RegistrationStatus {
                registered: status.registered(),
                generation: status.generation.unwrap_or(0),
                socket: status
                    .socket
                    .as_ref()
                    .map_or_else(String::new, |path| path.display().to_string()),
                delivered_version: status.delivered_version.unwrap_or(0),
                trouble,
            },
        );
    }
}
