//! Fitting the defaults of a configuration to where the program runs, and saying what is missing there.

use std::io;
use std::path::Path;

use crate::config::Config;
use crate::footing::{self, StatePlace};
use crate::surroundings::{
    self, DRIVER_ROOT, Places, is_read_only, lasting_state_dir, usual_library_path,
};

/// Name of the admin socket in the state folder.
const SOCKET_NAME: &str = "agent.sock";

/// Chooses what nobody chose: the state folder when the default would not outlive this container, the
/// admin socket when nothing can be created at its default, the folders of the driver library. The same
/// for the agent and for every command beside it, so that they meet.
#[must_use]
pub fn settle(mut config: Config) -> Config {
    if config.state_dir_unset
        && let Some(dir) = &config.state_dir
    {
        let lasting = lasting_state_dir(dir, &config.device_plugin_dir, config.in_pod);
        config.state_dir = Some(lasting);
    }
    if config.admin_socket_unset
        && is_read_only(&config.admin_socket)
        && let Some(dir) = &config.state_dir
    {
        config.admin_socket = dir.join(SOCKET_NAME);
    }
    if config.ld_library_path.as_deref().is_none_or(str::is_empty) {
        config.ld_library_path = usual_library_path(Path::new(DRIVER_ROOT));
    }
    config
}

/// What a look at the surroundings needs of a settled configuration.
#[must_use]
pub fn places(config: &Config) -> Places {
    Places {
        state_dir: config.state_dir.clone(),
        device_plugin_dir: config.device_plugin_dir.clone(),
        pod_resources_socket: config.pod_resources_socket.clone(),
        dev_dir: config.dev_dir.clone().into(),
        ld_library_path: config.ld_library_path.clone(),
        trusted_library: config.trusted_library.clone(),
        in_pod: config.in_pod,
    }
}

/// Says what is missing, one warning each, on a thread that nobody waits for: a dead mount must not
/// delay the start.
///
/// # Errors
/// When no thread can be had.
pub(super) fn report_lacks(config: &Config) -> io::Result<()> {
    let places = places(config);
    std::thread::Builder::new()
        .name("surroundings".to_owned())
        .spawn(move || warn_of_lacks(&places))
        .map(drop)
}

fn warn_of_lacks(places: &Places) {
    let facts = surroundings::look(places);
    if let (StatePlace::BesideSockets, Some(dir)) = (&facts.state, &places.state_dir) {
        tracing::info!(state_dir = %dir.display(), "no volume for the state: it lies in kubelet's folder");
    }
    for lack in footing::lacks(&facts) {
        tracing::warn!(
            lack = lack.lack,
            consequence = lack.consequence,
            add = lack.remedy,
            "the agent is not given all it needs"
        );
    }
}
