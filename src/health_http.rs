//! Health over HTTP or HTTPS, for kubelet's probes.
//!
//! `GET /` and `GET /healthz` ask whether a restart would help, `GET /readyz` whether the agent does its
//! whole duty: 200 `ok`, or 503 with the reasons. Knows nothing of the agent but its vitals, and takes
//! old ones for a bad sign. One connection carries one request and lives for seconds; when there are too
//! many, the oldest ends, so that whoever holds connections open cannot lock a prober out. The price is
//! that a flood costs others a few retries.

mod answer;
mod server;
mod tls;

pub use server::{BindError, Endpoint, bind, serve};
pub use tls::{Tls, TlsError};
