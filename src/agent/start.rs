//! The ordered start and the drain.
//!
//! Store, ledger, driver, kubelet's records, registration: in this order, so that nothing is offered
//! before its holders are known. The end goes the other way.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::{self, AdminError};
use crate::clock::{RandomIds, SystemClock};
use crate::config::Config;
use crate::domain::chip::DiePolicy;
use crate::domain::offer::Offer;
use crate::driver::client::{DriverConfig, DriverHost};
use crate::health_http::{BindError, Endpoint};
use crate::kubelet::{
    KubeletActivity, KubeletConfig, KubeletParts, KubeletStatus, RecordsReader, serve,
};
use crate::offering::ChipRefused;
use crate::ports::{Clock, Ids};
use crate::store::{OpenError, Settings, Store, open_waiting};
use crate::surroundings::driver_lock_dir;

use super::command::{COMMAND_QUEUE, Command};
use super::delivery::tell_delivery;
use super::front::Front;
use super::late_store::{LateStore, open_failure};
use super::owner::{Outlets, Owner, OwnerSettings, StoreState};
use super::pulse::{self, Beats, Observed};
use super::settle::report_lacks;
use super::watch_chips::{ChipPacing, watch_chips};
use super::watch_records::watch_records;

/// Events and other news of the driver that wait for the watcher.
const NOTICE_QUEUE: usize = 1024;

/// How long the registration waits for the driver at the start. Without one the ids of held chips
/// are registered as unhealthy, so that kubelet does not drop the resource under running pods.
const DRIVER_FIRST: Duration = Duration::from_secs(20);

/// Bound of the whole drain; kubelet's part has 5 s of its own.
const DRAIN: Duration = Duration::from_secs(10);

/// Why the agent could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The kernel's boot id cannot be read.
    #[error("the kernel's boot id cannot be read; is /proc mounted?")]
    Clock(#[source] io::Error),
    /// Signals, threads or the own program cannot be had.
    #[error("the system refuses {what}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// The store must not be used by this agent.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The admin socket cannot be served.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The configured mode is not for this hardware.
    #[error(transparent)]
    Unfit(#[from] ChipRefused),
    /// Health cannot be served where it was asked for.
    #[error(transparent)]
    Health(#[from] BindError),
    /// A fault of ours: without its owner the agent can do nothing, and a new one rebuilds everything.
    #[error("the owner of the ledger broke; its last words are in the log")]
    OwnerBroke,
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError::System { what, source }
}

/// Ends the agent when the owner ends, however it ends.
struct EndsAgent(CancellationToken);

impl Drop for EndsAgent {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs the agent until SIGTERM, SIGINT or SIGQUIT; answers probes at `health` from the first moment on.
///
/// # Errors
/// When it could not start; once started it lives through failures of store, driver and kubelet.
pub async fn run(config: Config, health: Option<Endpoint>) -> Result<(), StartError> {
    let clock = Arc::new(SystemClock::open().map_err(StartError::Clock)?);
    let cancel = CancellationToken::new();
    let tracker = TaskTracker::new();
    let (reregister, reregister_asked) = mpsc::channel(1);
    follow_signals(&tracker, &cancel, reregister)?;
    announce(&config);
    report_lacks(&config).map_err(system("a thread"))?;
    let shared_clock: Arc<dyn Clock> = Arc::<SystemClock>::clone(&clock);
    let driver_init = config.driver_init;
    let pulse = pulse::begin(health, driver_init, &shared_clock, &tracker, &cancel).await?;

    let opened = open_store(&config, &clock, &cancel).await;
    let (journal, state) = match opened {
        Ok(opened) => opened,
        Err(OpenError::Cancelled { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let journal = Arc::new(journal);

    let kubelet_config = kubelet_config(&config);
    let records = Arc::new(RecordsReader::new(
        &kubelet_config,
        Arc::clone(&shared_clock),
    ));
    let (offers, offers_seen) = watch::channel(Arc::new(Offer::default()));
    let (sampled, sampled_seen) = watch::channel(false);
    let (unfit, unfit_seen) = watch::channel(None);
    tracker.spawn(end_when_unfit(unfit_seen.clone(), cancel.clone()));
    let (commands, queue) = mpsc::channel(COMMAND_QUEUE);
    let (status, status_seen) = watch::channel(KubeletStatus::default());
    let owner = Owner::new(
        OwnerSettings::of(&config),
        Arc::clone(&journal),
        Arc::clone(&records),
        Arc::clone(&clock),
        RandomIds,
        state,
        Outlets {
            offers,
            sampled,
            unfit,
        },
    );
    let front = Front::new(
        commands.clone(),
        offers_seen.clone(),
        records,
        Arc::clone(&journal),
        config.offering.domain().to_owned(),
        status_seen.clone(),
    );
    let ends = EndsAgent(cancel.clone());
    let owner = tracker.spawn(async move {
        let _ends = ends;
        owner.run(queue).await;
    });
    admin::serve(&config.admin_socket, front.clone(), &tracker, &cancel).await?;

    let beats = Beats::default();
    let driver = start_driver(&config, &commands, &beats, &tracker, &cancel)?;
    pulse.hand_over(Observed {
        administration: front.clone(),
        registrations: status_seen,
        offers: offers_seen,
        driver: beats,
    });
    let activity = KubeletActivity::new(Arc::clone(&shared_clock));
    wait_for_chips(sampled_seen, &cancel).await;
    tracker.spawn(watch_records(
        front.clone(),
        activity.clone(),
        config.records_poll,
        cancel.clone(),
    ));
    serve(KubeletParts {
        config: kubelet_config,
        allocations: front,
        clock: shared_clock,
        activity,
        reregister: reregister_asked,
        status,
        cancel: cancel.clone(),
        tracker: tracker.clone(),
    })
    .await;

    let broke = drain(&driver, &commands, owner, &journal, &tracker).await;
    tracing::info!("ascend-agent ended");
    if broke {
        return Err(StartError::OwnerBroke);
    }
    let unfit = unfit_seen.borrow().clone();
    unfit.map_or(Ok(()), |refused| Err(refused.into()))
}

/// Ends the agent when the configured mode does not fit the chips of the first enumeration.
async fn end_when_unfit(
    mut unfit: watch::Receiver<Option<ChipRefused>>,
    cancel: CancellationToken,
) {
    let found = async { unfit.wait_for(Option::is_some).await.is_ok() };
    // An error means that the owner is gone, which ends the agent anyway.
    if cancel.run_until_cancelled(found).await.is_some() {
        cancel.cancel();
    }
}

/// Starts the driver's process and what follows it.
fn start_driver(
    config: &Config,
    commands: &mpsc::Sender<Command>,
    beats: &Beats,
    tracker: &TaskTracker,
    cancel: &CancellationToken,
) -> Result<Arc<DriverHost>, StartError> {
    let (notices, notices_seen) = mpsc::channel(NOTICE_QUEUE);
    let driver = DriverHost::start(driver_config(config)?, notices)
        .map_err(system("a thread for the driver"))?;
    let driver = Arc::new(driver);
    tracker.spawn(watch_chips(
        Arc::clone(&driver),
        commands.clone(),
        notices_seen,
        chip_pacing(config),
        beats.clone(),
        cancel.clone(),
    ));
    Ok(driver)
}

fn announce(config: &Config) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        "ascend-agent starts; it serves kubelet 1.26 and newer"
    );
    tell_delivery(config);
}

fn kubelet_config(config: &Config) -> KubeletConfig {
    KubeletConfig::new(
        &config.device_plugin_dir,
        &config.pod_resources_socket,
        RandomIds.grant().0,
    )
}

/// The way back: no more driver, a last record, the store closed, every task ended. True when the owner
/// broke.
async fn drain(
    driver: &DriverHost,
    commands: &mpsc::Sender<Command>,
    owner: JoinHandle<()>,
    journal: &LateStore,
    tracker: &TaskTracker,
) -> bool {
    tracing::info!("draining");
    let mut broke = false;
    let drained = timeout(DRAIN, async {
        driver.close().await;
        let (reply, stopped) = oneshot::channel();
        if commands.send(Command::Stop { reply }).await.is_ok() {
            // The owner may be gone already; then there is nothing to wait for.
            let _ = stopped.await;
        }
        broke = owner.await.is_err();
        journal.close().await;
        tracker.close();
        tracker.wait().await;
    });
    if drained.await.is_err() {
        tracing::warn!(within = ?DRAIN, "not everything ended in time");
    }
    broke
}

fn chip_pacing(config: &Config) -> ChipPacing {
    ChipPacing {
        device_wait: config.device_wait,
        health_poll: config.health_poll,
        dev_dir: config.dev_dir.clone(),
        die_policy: if config.single_die_mode {
            DiePolicy::Independent
        } else {
            DiePolicy::Union
        },
    }
}

fn driver_config(config: &Config) -> Result<DriverConfig, StartError> {
    let program = std::env::current_exe().map_err(system("the path of this program"))?;
    let lock_dir = driver_lock_dir(config.state_dir.as_deref(), &config.admin_socket);
    Ok(DriverConfig {
        ld_library_path: config.ld_library_path.clone(),
        trusted_library: config.trusted_library.clone(),
        sysfs: config.sysfs_dir.clone(),
        call_deadline: config.driver_call,
        init_deadline: config.driver_init,
        ..DriverConfig::new(program, lock_dir)
    })
}

/// Opens the store. A folder that is there and refuses is a failing store: the agent runs, grants
/// nothing and tries again. A folder that cannot be made is no state volume: the agent runs on what
/// kubelet knows. A newer schema or a foreign owner is for a person to settle.
async fn open_store(
    config: &Config,
    clock: &Arc<SystemClock>,
    cancel: &CancellationToken,
) -> Result<(LateStore, StoreState), OpenError> {
    let clock: Arc<dyn Clock> = Arc::<SystemClock>::clone(clock);
    let Some(directory) = config.state_dir.clone() else {
        return volatile(clock, "state_dir is \"none\"".to_owned());
    };
    let store = Settings::new(directory.clone());
    let opened = open_waiting(
        store.clone(),
        Arc::clone(&clock),
        |_| {},
        cancel.cancelled(),
    )
    .await;
    match opened {
        Ok(opened) => {
            if let Some(rebuilt) = &opened.rebuilt {
                tracing::error!(
                    ?rebuilt,
                    "the store was damaged and set aside; holders are taken from kubelet's records"
                );
            }
            if let Some(copy) = &opened.migrated {
                tracing::info!(copy = %copy.display(), "the store was brought to the newest schema");
            }
            let durable = StoreState::Durable {
                last_commit: last_commit(&opened.state),
            };
            Ok((LateStore::opened(opened.store, clock), durable))
        }
        Err(
            error @ (OpenError::NewerSchema { .. }
            | OpenError::ForeignOwner { .. }
            | OpenError::SharedFolder { .. }
            | OpenError::Cancelled { .. }),
        ) => Err(error),
        Err(error) => {
            let failure = open_failure(&error, directory.clone());
            if directory.is_dir() {
                tracing::error!(error = %failure, "the store cannot be opened: nothing is granted");
                let failing = StoreState::failing(failure.to_string());
                return Ok((LateStore::unopened(store, clock), failing));
            }
            tracing::error!(
                error = %failure,
                "no state folder: after a restart holders are known from kubelet's records only; \
                 mount a host folder there"
            );
            volatile(clock, failure.to_string())
        }
    }
}

fn last_commit(state: &crate::ports::StoredState) -> u64 {
    state.last_sequence.map_or(0, |sequence| sequence.0)
}

fn volatile(clock: Arc<dyn Clock>, why: String) -> Result<(LateStore, StoreState), OpenError> {
    let opened = Store::volatile(Arc::clone(&clock))?;
    Ok((
        LateStore::opened(opened.store, clock),
        StoreState::Volatile { why },
    ))
}

/// Waits until every chip was sampled once, or for the bound.
async fn wait_for_chips(mut sampled: watch::Receiver<bool>, cancel: &CancellationToken) {
    // An error means that the owner is gone, which ends the agent anyway.
    let first = async { sampled.wait_for(|sampled| *sampled).await.is_ok() };
    tokio::select! {
        () = cancel.cancelled() => {}
        waited = timeout(DRIVER_FIRST, first) => if waited.is_err() {
            tracing::warn!(within = ?DRIVER_FIRST, "no chip could be read yet; registering what is known");
        }
    }
}

fn follow_signals(
    tracker: &TaskTracker,
    cancel: &CancellationToken,
    reregister: mpsc::Sender<()>,
) -> Result<(), StartError> {
    let open = |kind| signal(kind).map_err(system("signal reception"));
    let mut terminate = open(SignalKind::terminate())?;
    let mut interrupt = open(SignalKind::interrupt())?;
    let mut quit = open(SignalKind::quit())?;
    let mut hangup = open(SignalKind::hangup())?;
    let cancel = cancel.clone();
    tracker.spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = quit.recv() => break,
                _ = hangup.recv() => {
                    tracing::info!("SIGHUP: registering anew");
                    // One waiting request is as good as two.
                    let _ = reregister.try_send(());
                }
                () = cancel.cancelled() => return,
            }
        }
        cancel.cancel();
    });
    Ok(())
}
