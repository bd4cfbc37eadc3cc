//! One open ListAndWatch: the current list at once, then one message per change. A slow reader gets
//! the newest list next, never a backlog.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::watch;
use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

use super::api::deviceplugin::ListAndWatchResponse;
use super::messages;
use crate::domain::ids::ResourceName;
use crate::domain::offer::Offer;

/// Streams of one generation, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamCounts {
    pub(super) opened: u64,
    pub(super) ended: u64,
}

/// Called with the version of a list that was handed over.
pub(super) type Delivered = Arc<dyn Fn(u64) + Send + Sync>;

pub(super) struct ListStream {
    resource: ResourceName,
    offers: WatchStream<Arc<Offer>>,
    ending: Pin<Box<WaitForCancellationFutureOwned>>,
    last: Option<(ListAndWatchResponse, u64)>,
    handed_over: Option<u64>,
    delivered: Delivered,
    _counted: CountedStream,
}

impl ListStream {
    pub(super) fn open(
        resource: ResourceName,
        offers: watch::Receiver<Arc<Offer>>,
        ending: CancellationToken,
        counts: &Arc<watch::Sender<StreamCounts>>,
        delivered: Delivered,
    ) -> Self {
        counts.send_modify(|counts| counts.opened = counts.opened.saturating_add(1));
        Self {
            resource,
            offers: WatchStream::new(offers),
            ending: Box::pin(ending.cancelled_owned()),
            last: None,
            handed_over: None,
            delivered,
            _counted: CountedStream(Arc::clone(counts)),
        }
    }

    /// The message for this offer, unless kubelet has an equal list already.
    fn message(&mut self, offer: &Offer) -> Option<ListAndWatchResponse> {
        let devices = offer
            .resources
            .get(&self.resource)
            .map_or(&[][..], Vec::as_slice);
        // What the list is made from may differ in words that kubelet is not told.
        let message = messages::list(devices);
        if let Some((known, refresh)) = &self.last
            && *refresh == offer.refresh
            && *known == message
        {
            return None;
        }
        self.last = Some((message.clone(), offer.refresh));
        Some(message)
    }
}

impl Stream for ListStream {
    type Item = Result<ListAndWatchResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // Asked for the next message: the transport has taken the one before.
        if let Some(version) = self.handed_over.take() {
            (self.delivered)(version);
        }
        if self.ending.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        loop {
            let Some(offer) = std::task::ready!(Pin::new(&mut self.offers).poll_next(context))
            else {
                return Poll::Ready(None);
            };
            match self.message(&offer) {
                Some(message) => {
                    self.handed_over = Some(offer.version);
                    return Poll::Ready(Some(Ok(message)));
                }
                // What kubelet has equals this version too.
                None => (self.delivered)(offer.version),
            }
        }
    }
}

struct CountedStream(Arc<watch::Sender<StreamCounts>>);

impl Drop for CountedStream {
    fn drop(&mut self) {
        self.0
            .send_modify(|counts| counts.ended = counts.ended.saturating_add(1));
    }
}
