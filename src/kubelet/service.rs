//! The device-plugin service of one registration generation.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status};
use tracing::{Instrument, error, info, info_span, warn};

use super::activity::KubeletActivity;
use super::api::deviceplugin as wire;
use super::list_stream::{Delivered, ListStream, StreamCounts};
use super::messages;
use super::status::CallFailure;
use crate::domain::ids::ResourceName;
use crate::domain::offer::Refusal;
use crate::ports::Allocations;

pub(super) struct PluginService<A> {
    pub(super) resource: ResourceName,
    pub(super) allocations: A,
    pub(super) activity: KubeletActivity,
    pub(super) tracker: TaskTracker,
    pub(super) counts: Arc<watch::Sender<StreamCounts>>,
    pub(super) ending: CancellationToken,
    pub(super) delivered: Delivered,
    pub(super) allocate_budget: Duration,
    pub(super) preferred_budget: Duration,
}

impl<A: Allocations> PluginService<A> {
    /// Runs a call in a task of its own, so that neither a panic nor a peer that hangs up cuts it
    /// in the middle; it counts as in flight until it has really ended.
    async fn within<T: Send + 'static>(
        &self,
        budget: Duration,
        work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, CallFailure> {
        let guard = self.activity.begin();
        let call = async move {
            let _guard = guard;
            tokio::time::timeout(budget, work).await
        };
        match self.tracker.spawn(call.in_current_span()).await {
            Ok(Ok(answer)) => answer.map_err(CallFailure::from),
            Ok(Err(_)) => Err(CallFailure::Overran { budget }),
            Err(fault) => {
                error!(%fault, "a call of kubelet broke");
                Err(CallFailure::Broke)
            }
        }
    }
}

#[tonic::async_trait]
impl<A: Allocations> wire::device_plugin_server::DevicePlugin for PluginService<A> {
    async fn get_device_plugin_options(
        &self,
        _: Request<wire::Empty>,
    ) -> Result<Response<wire::DevicePluginOptions>, Status> {
        Ok(Response::new(messages::options()))
    }

    type ListAndWatchStream =
        Pin<Box<dyn Stream<Item = Result<wire::ListAndWatchResponse, Status>> + Send>>;

    async fn list_and_watch(
        &self,
        _: Request<wire::Empty>,
    ) -> Result<Response<Self::ListAndWatchStream>, Status> {
        if self.ending.is_cancelled() {
            return Err(CallFailure::Ended.into());
        }
        let stream = ListStream::open(
            self.resource.clone(),
            self.allocations.offers(),
            self.ending.clone(),
            &self.counts,
            Arc::clone(&self.delivered),
        );
        Ok(Response::new(Box::pin(stream)))
    }

    async fn allocate(
        &self,
        request: Request<wire::AllocateRequest>,
    ) -> Result<Response<wire::AllocateResponse>, Status> {
        let span = info_span!("allocate", resource = %self.resource);
        let (allocations, resource) = (self.allocations.clone(), self.resource.clone());
        let work = async move {
            let containers = messages::requested(request.into_inner()).map_err(Refusal::Invalid)?;
            let mut answers = Vec::with_capacity(containers.len().min(16));
            for ids in containers {
                let injection = allocations.allocate(resource.clone(), ids).await?;
                answers.push(messages::container_answer(injection));
            }
            Ok(answers)
        };
        let answered = self
            .within(self.allocate_budget, work)
            .instrument(span.clone())
            .await;
        let _entered = span.enter();
        match answered {
            Ok(container_responses) => {
                info!(containers = container_responses.len(), "allocated");
                Ok(Response::new(wire::AllocateResponse {
                    container_responses,
                }))
            }
            Err(failure) => {
                warn!(%failure, "not allocated");
                Err(failure.into())
            }
        }
    }

    async fn get_preferred_allocation(
        &self,
        request: Request<wire::PreferredAllocationRequest>,
    ) -> Result<Response<wire::PreferredAllocationResponse>, Status> {
        let (allocations, resource) = (self.allocations.clone(), self.resource.clone());
        let questions = messages::preferences(request.into_inner())
            .map_err(|invalid| CallFailure::from(Refusal::Invalid(invalid)))?;
        let containers = questions.len();
        let work = async move {
            let mut answers = Vec::with_capacity(containers.min(16));
            for question in questions {
                let chosen = allocations
                    .preferred(
                        resource.clone(),
                        question.available,
                        question.must_include,
                        question.size,
                    )
                    .await?;
                answers.push(wire::ContainerPreferredAllocationResponse {
                    device_ids: chosen.iter().map(|id| id.as_str().to_owned()).collect(),
                });
            }
            Ok(answers)
        };
        // An error here rejects the pod, yet the answer is only a hint: without one kubelet picks.
        let container_responses = self
            .within(self.preferred_budget, work)
            .await
            .unwrap_or_else(|failure| {
                warn!(resource = %self.resource, %failure, "no preferred devices");
                vec![wire::ContainerPreferredAllocationResponse::default(); containers]
            });
        Ok(Response::new(wire::PreferredAllocationResponse {
            container_responses,
        }))
    }

    async fn pre_start_container(
        &self,
        _: Request<wire::PreStartContainerRequest>,
    ) -> Result<Response<wire::PreStartContainerResponse>, Status> {
        let call = "PreStartContainer";
        Err(CallFailure::NotAskedFor { call }.into())
    }
}
