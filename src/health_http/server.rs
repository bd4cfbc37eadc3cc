//! The server: few connections, short lives.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::answer;
use super::tls::Tls;
use crate::domain::vitals::Vitals;
use crate::ports::Clock;

/// A few probers at once; each connection lasts milliseconds.
const CONNECTIONS_MAX: usize = 32;

/// Longest wait for the handshake and for the request's head, each.
const STEP: Duration = Duration::from_secs(3);

/// Longest life of a connection.
const LIFE: Duration = Duration::from_secs(8);

/// Longest head of a request; the least that the HTTP library takes.
const HEAD_MAX_BYTES: usize = 8192;

/// Pause after the system refused a connection, which it does when descriptors run out.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Where health is served.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Addresses, of which the first that can be had is taken.
    pub addresses: Vec<SocketAddr>,
    /// Certificate and key; without them it is plain HTTP.
    pub tls: Option<Tls>,
}

/// The address cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("health cannot be served on {}; free the port or choose another one", listed(.addresses))]
pub struct BindError {
    addresses: Vec<SocketAddr>,
    #[source]
    source: io::Error,
}

fn listed(addresses: &[SocketAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(" or ")
}

/// Takes the first address that can be had.
///
/// # Errors
/// When none can.
pub async fn bind(addresses: &[SocketAddr]) -> Result<TcpListener, BindError> {
    TcpListener::bind(addresses)
        .await
        .map_err(|source| BindError {
            addresses: addresses.to_vec(),
            source,
        })
}

/// Serves until cancelled, in tasks of the tracker.
pub fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    vitals: watch::Receiver<Vitals>,
    clock: Arc<dyn Clock>,
    tracker: &TaskTracker,
    cancel: &CancellationToken,
) {
    let (connections, cancel) = (tracker.clone(), cancel.clone());
    tracker.spawn(async move {
        let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
        loop {
            let accepted = tokio::select! {
                () = cancel.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                sleep(REFUSED_PAUSE).await;
                continue;
            };
            open.retain(|connection| !connection.is_finished());
            if open.len() >= CONNECTIONS_MAX
                && let Some(oldest) = open.pop_front()
            {
                oldest.abort();
            }
            let life = one_connection(stream, tls.clone(), vitals.clone(), Arc::clone(&clock));
            open.push_back(connections.spawn(async move {
                // Too late is the other side's trouble.
                let _ = timeout(LIFE, life).await;
            }));
        }
        for connection in open {
            connection.abort();
        }
    });
}

async fn one_connection(
    stream: TcpStream,
    tls: Option<Tls>,
    vitals: watch::Receiver<Vitals>,
    clock: Arc<dyn Clock>,
) {
    match tls {
        None => one_request(stream, vitals, clock).await,
        Some(Tls(acceptor)) => {
            // Whoever speaks no TLS gets no answer.
            if let Ok(Ok(stream)) = timeout(STEP, acceptor.accept(stream)).await {
                one_request(stream, vitals, clock).await;
            }
        }
    }
}

async fn one_request(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    vitals: watch::Receiver<Vitals>,
    clock: Arc<dyn Clock>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let now = clock.now().boot_time;
        let (method, path) = (request.method(), request.uri().path());
        let response: Response<String> = answer(method, path, &vitals.borrow(), now);
        ready(Ok::<_, Infallible>(response))
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(STEP)
        .keep_alive(false)
        .max_buf_size(HEAD_MAX_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a health request was broken off");
    }
}
