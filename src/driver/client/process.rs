//! One child process: start, talk, end, reap.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use super::super::host::HostOptions;
use super::super::moment::Moment;
use super::super::protocol::{FrameError, Report, Request, read_frame, write_frame};
use super::DriverConfig;
use super::supervisor::Message;

/// A request is a few kilobytes and the host always reads, so this never passes on a healthy one.
const WRITE_DEADLINE: Duration = Duration::from_secs(1);

/// How often a host on its way out is looked at,
pub(super) const REAP_POLL: Duration = Duration::from_millis(5);

/// for this long, beyond every deadline for an orderly end,
const REAP_SOON_FOR: Duration = Duration::from_secs(5);

/// and how often after that.
const REAP_RARELY: Duration = Duration::from_secs(1);

/// The reading thread decodes one inventory at a time.
const STACK_BYTES: usize = 256 * 1024;

/// A running host.
#[derive(Debug)]
pub(super) struct HostProcess {
    child: Child,
    channel: UnixStream,
}

impl HostProcess {
    /// Starts a host; its reports and its end reach `inbox` under this epoch. Must be called from
    /// the thread that lives as long as the host shall.
    pub(super) fn start(
        config: &DriverConfig,
        epoch: u64,
        inbox: SyncSender<Message>,
    ) -> io::Result<Self> {
        let (channel, far) = UnixStream::pair()?;
        channel.set_write_timeout(Some(WRITE_DEADLINE))?;
        let options = HostOptions {
            parent_pid: std::process::id(),
            state_dir: config.state_dir.clone(),
            ld_library_path: config.ld_library_path.clone(),
            trusted_library: config.trusted_library.clone(),
            sysfs: config.sysfs.clone(),
            lock_wait: config.lock_wait,
            facts_deadline: config.facts_deadline,
            stuck_bound: config.stuck_bound,
        };
        let mut command = Command::new(&config.program);
        command
            .arg("driver-host")
            .args(options.to_args())
            .envs(config.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(far)))
            // Signals of a terminal are for the agent, which closes the host in order.
            .process_group(0);
        if let Some(path) = &config.ld_library_path {
            command.env("LD_LIBRARY_PATH", path);
        }
        let mut child = command.spawn()?;
        // Our copy of the far end, which would hide the host's death.
        drop(command);
        let reading = channel.try_clone().and_then(|channel| {
            thread::Builder::new()
                .name("driver-reads".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || read_reports(&channel, epoch, &inbox))
        });
        if let Err(error) = reading {
            child.kill()?;
            child.wait()?;
            return Err(error);
        }
        Ok(Self { child, channel })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn send(&self, request: &Request) -> Result<(), FrameError> {
        write_frame(&mut &self.channel, request)
    }

    /// Asks for an orderly end, which is enforced at `kill_at`.
    pub(super) fn close(self, kill_at: Moment) -> Ending {
        match self.send(&Request::Close) {
            Ok(()) => Ending {
                host: self,
                began: Moment::now(),
                kill_at: Some(kill_at),
            },
            Err(_) => self.kill(),
        }
    }

    /// Ends it by a signal, now.
    pub(super) fn kill(mut self) -> Ending {
        // It fails only for a process that has been reaped, which none has that is still here.
        let _killed = self.child.kill();
        Ending {
            host: self,
            began: Moment::now(),
            kill_at: None,
        }
    }
}

/// A host that is on its way out. Waiting for it in one go could block for ever on a process that
/// hangs inside the kernel.
#[derive(Debug)]
pub(super) struct Ending {
    host: HostProcess,
    began: Moment,
    kill_at: Option<Moment>,
}

impl Ending {
    /// When to look again: soon at first, rarely for one that nothing can end.
    pub(super) fn look_again(&self, now: Moment) -> Moment {
        let old = now.since(self.began) >= REAP_SOON_FOR;
        now.after(if old { REAP_RARELY } else { REAP_POLL })
    }

    /// How it ended, once it did.
    pub(super) fn reaped(&mut self, now: Moment) -> Option<String> {
        match self.host.child.try_wait() {
            Ok(Some(status)) => return Some(status.to_string()),
            Ok(None) => {}
            Err(error) => return Some(error.to_string()),
        }
        if self.kill_at.is_some_and(|moment| moment <= now) {
            self.kill_at = None;
            let _killed = self.host.child.kill();
        }
        None
    }
}

fn read_reports(mut channel: &UnixStream, epoch: u64, inbox: &SyncSender<Message>) {
    let cause = loop {
        match read_frame::<Report>(&mut channel) {
            Ok(Some(report)) => {
                if inbox.send(Message::Report { epoch, report }).is_err() {
                    return;
                }
            }
            Ok(None) => break "it closed its channel".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    // Without a receiver the agent is ending, and with it this host.
    let _sent = inbox.send(Message::Ended { epoch, cause });
}
