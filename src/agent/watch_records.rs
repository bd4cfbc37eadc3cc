//! Looking at kubelet's records: soon after a grant or a new checkpoint, and from time to time.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::kubelet::KubeletActivity;
use crate::ports::{Journal, KubeletRecords};

use super::command::Command;
use super::front::Front;

/// Kubelet writes its checkpoint several times during one admission.
const CHECKPOINT_DEBOUNCE: Duration = Duration::from_millis(50);

/// Lists no closer than this, whatever happens: kubelet serves all its clients 100 a second.
const LIST_PAUSE: Duration = Duration::from_secs(5);

/// Quiet time after kubelet's last call before we list pods ourselves: a List during an Allocate can
/// make kubelet forget the ids in flight (rule L-1).
const QUIET_BEFORE_LIST: Duration = Duration::from_secs(1);

pub(super) async fn watch_records<R: KubeletRecords, J: Journal>(
    front: Front<R, J>,
    activity: KubeletActivity,
    period: Duration,
    cancel: CancellationToken,
) {
    let work = async {
        let mut next_list = now();
        let mut earliest = next_list;
        loop {
            tokio::select! {
                () = front.checkpoint_hint() => {
                    // Several hints within the pause count as one.
                    sleep(CHECKPOINT_DEBOUNCE).await;
                    let views = front.checkpoint_view().await;
                    if !front.tell(Command::Views(views)).await {
                        return;
                    }
                }
                () = front.grant_hint() => next_list = next_list.min(earliest),
                () = sleep_until(next_list) => {
                    activity.wait_quiet(QUIET_BEFORE_LIST).await;
                    let views = front.views().await;
                    earliest = now() + LIST_PAUSE;
                    next_list = now() + period;
                    if !front.tell(Command::Views(views)).await {
                        return;
                    }
                }
            }
        }
    };
    cancel.run_until_cancelled(work).await;
}

fn now() -> Instant {
    Instant::now()
}
