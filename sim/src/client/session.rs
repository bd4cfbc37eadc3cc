//! The process-wide session: made at init, replaced by the next init, closed at unload.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use super::link::{CallError, Link};
use super::tables::{At, Tables};
use crate::wire::{Answer, Call, ChipQuery, Failure, Query, ReturnCode, Unit};

/// Names the daemon's socket; read at every init.
const SOCKET_VARIABLE: &str = "ASCEND_SIM_SOCKET";

static SESSION: RwLock<Option<Arc<Session>>> = RwLock::new(None);

/// A way to the daemon, and the tables once an init succeeded.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) link: Link,
    tables: Option<Tables>,
}

/// The present session; one without tables before the first init.
pub(crate) fn session() -> Arc<Session> {
    let present = SESSION
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    present.unwrap_or_else(|| Arc::new(Session::unready()))
}

/// Takes the numbers of the present boot. A failed attempt leaves earlier tables alone.
pub(crate) fn initialise(symbol: &'static str) -> Result<(), Failure> {
    let mut fresh = Session::unready();
    let call = fresh.compose(symbol, None, None, Query::Init);
    let answer = fresh.link.call(&call).map_err(|error| match error {
        CallError::Refused(failure) => failure,
        CallError::Unreachable(_) => Failure(ReturnCode::INNER_ERROR),
    })?;
    let Answer::Snapshot(snapshot) = answer else {
        return Err(Failure(ReturnCode::INNER_ERROR));
    };
    fresh.tables = Some(Tables::new(snapshot));
    *SESSION.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(fresh));
    Ok(())
}

/// Closes the connections that nobody uses any more.
pub(crate) fn close() {
    SESSION
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
}

impl Session {
    fn unready() -> Self {
        let socket = std::env::var_os(SOCKET_VARIABLE);
        let socket = PathBuf::from(socket.as_deref().unwrap_or(OsStr::new("")));
        Self {
            link: Link::new(socket),
            tables: None,
        }
    }

    /// The tables, once an init succeeded.
    pub(crate) fn tables(&self) -> Option<&Tables> {
        self.tables.as_ref()
    }

    /// Asks the hardware.
    pub(crate) fn ask(
        &self,
        symbol: &'static str,
        at: At,
        query: Query,
    ) -> Result<Answer, Failure> {
        let is_health = query == Query::Chip(ChipQuery::Health);
        let call = self.compose_at(symbol, at, query);
        self.link.call(&call).map_err(|error| match error {
            CallError::Refused(failure) => failure,
            CallError::Unreachable(_) if is_health => Failure(ReturnCode::NOT_READY),
            CallError::Unreachable(_) => Failure(ReturnCode::INNER_ERROR),
        })
    }

    /// Asks about one chip and another.
    pub(crate) fn ask_link(
        &self,
        symbol: &'static str,
        at: At,
        other: At,
    ) -> Result<Answer, Failure> {
        let other = self.tables.as_ref().map(|tables| tables.resolve(other));
        let Some(Ok(Some(Unit::Chip(other)))) = other else {
            let refuse = Some(ReturnCode::INVALID_PARAMETER);
            let call = self.compose(symbol, None, refuse, Query::Pass);
            return match self.link.call(&call) {
                Err(CallError::Refused(failure)) => Err(failure),
                Ok(_) | Err(CallError::Unreachable(_)) => {
                    Err(Failure(ReturnCode::INVALID_PARAMETER))
                }
            };
        };
        self.ask(symbol, at, Query::Chip(ChipQuery::Link(other)))
    }

    /// Answers from the tables, after the daemon counted the call and fault rules let it through.
    /// Without a daemon the tables alone answer, as memory of a process does.
    pub(crate) fn look_up<T>(
        &self,
        symbol: &'static str,
        at: At,
        before_init: ReturnCode,
        find: impl FnOnce(&Tables) -> Result<T, ReturnCode>,
    ) -> Result<T, Failure> {
        let found = match &self.tables {
            Some(tables) => find(tables),
            None => Err(before_init),
        };
        let unit = self
            .tables
            .as_ref()
            .and_then(|tables| tables.resolve(at).ok().flatten());
        let call = self.compose(symbol, unit, found.as_ref().err().copied(), Query::Pass);
        match self.link.call(&call) {
            Err(CallError::Refused(failure)) => Err(failure),
            Ok(_) | Err(CallError::Unreachable(_)) => found.map_err(Failure),
        }
    }

    /// A call about what the caller named; a name that stands for nothing becomes the refusal.
    pub(super) fn compose_at(&self, symbol: &'static str, at: At, query: Query) -> Call {
        let unit = match &self.tables {
            Some(tables) => tables.resolve(at),
            None if matches!(at, At::Node) => Ok(None),
            None => Err(ReturnCode::INVALID_PARAMETER),
        };
        self.compose(symbol, unit.ok().flatten(), unit.err(), query)
    }

    fn compose(
        &self,
        symbol: &'static str,
        unit: Option<Unit>,
        refuse: Option<ReturnCode>,
        query: Query,
    ) -> Call {
        Call {
            symbol: symbol.to_owned(),
            unit,
            boot: self.tables.as_ref().map(|tables| tables.boot().to_owned()),
            refuse,
            query,
        }
    }
}
