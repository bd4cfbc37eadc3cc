//! The documents say what the program does, and nothing in them leads nowhere.

#[cfg(test)]
#[path = "documents/checklist.rs"]
mod checklist;
#[cfg(test)]
#[path = "documents/commands.rs"]
mod commands;
#[cfg(test)]
#[path = "documents/configuration.rs"]
mod configuration;
#[cfg(test)]
#[path = "documents/flags.rs"]
mod flags;
#[cfg(test)]
#[path = "documents/links.rs"]
mod links;
#[cfg(test)]
#[path = "documents/markdown.rs"]
mod markdown;
#[cfg(test)]
#[path = "documents/twins.rs"]
mod twins;
