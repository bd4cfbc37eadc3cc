//! Taking a store over from another agent that is still there, as in a rolling update.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::journal::{Opened, Settings, Store};
use super::open_error::OpenError;
use crate::ports::Clock;

const POLL: Duration = Duration::from_millis(250);
/// A log line a minute.
const POLLS_PER_REMINDER: u64 = 240;

/// Opens the store, waiting for another agent to let go of it. Says so at once and every minute, in
/// the log and through `on_wait`, which is given the holder. Ends early with `Cancelled`.
///
/// # Errors
/// Whatever [`Store::open`] says, except `InUse`.
pub async fn open_waiting(
    settings: Settings,
    clock: Arc<dyn Clock>,
    on_wait: impl Fn(&str),
    cancel: impl Future<Output = ()>,
) -> Result<Opened, OpenError> {
    let directory = settings.directory.clone();
    tokio::pin!(cancel);
    let mut polls = 0_u64;
    loop {
        let (settings, clock) = (settings.clone(), Arc::clone(&clock));
        let opening = tokio::task::spawn_blocking(move || Store::open(settings, clock));
        // A disk that hangs must not hold the end of the agent.
        let opened = tokio::select! {
            () = &mut cancel => return Err(OpenError::Cancelled { directory }),
            opened = opening => opened,
        };
        let holder = match opened {
            Ok(Err(OpenError::InUse { holder, .. })) => holder,
            Ok(done) => return done,
            Err(error) => {
                let cause = error.to_string();
                return Err(OpenError::Library {
                    path: directory,
                    cause,
                });
            }
        };
        if polls.is_multiple_of(POLLS_PER_REMINDER) {
            tracing::warn!(directory = %directory.display(), holder, "waiting for the store");
            on_wait(&holder);
        }
        polls += 1;
        tokio::select! {
            () = &mut cancel => return Err(OpenError::Cancelled { directory }),
            () = tokio::time::sleep(POLL) => {}
        }
    }
}
