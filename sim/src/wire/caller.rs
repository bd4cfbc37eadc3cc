//! Who the driver takes its callers for.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Who the driver takes its callers for. The simulation does not look at them itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Caller {
    /// Root on the machine itself
    #[default]
    Root,
    /// Another user on the machine itself
    User,
    /// Root in a privileged container
    Privileged,
    /// Root in a plain container
    Container,
    /// Another user in a plain container
    ContainerUser,
    /// Root in a virtual machine
    Vm,
}

impl Caller {
    /// Root, wherever.
    #[must_use]
    pub fn is_root(self) -> bool {
        !matches!(self, Self::User | Self::ContainerUser)
    }

    /// Root on the machine itself or in a privileged container.
    #[must_use]
    pub fn is_privileged(self) -> bool {
        matches!(self, Self::Root | Self::Privileged)
    }

    /// In a container that is not privileged.
    #[must_use]
    pub fn is_in_plain_container(self) -> bool {
        matches!(self, Self::Container | Self::ContainerUser)
    }
}
