//! Connections of kubelet to one of our servers: bounded in number, and severable, because a peer
//! that stops reading would otherwise keep a connection and its task for ever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;
use tracing::warn;

/// Kubelet opens one connection per registration and our self-check another.
const CONNECTIONS_MAX: usize = 64;

/// Pause after a failed accept (no file descriptors left), so that it does not spin.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// One accepted connection.
#[derive(Debug)]
pub(super) struct SeverableConnection {
    stream: UnixStream,
    severed: Pin<Box<WaitForCancellationFutureOwned>>,
    _permit: OwnedSemaphorePermit,
}

/// Accepts until `stop`; every connection reports an error to its server once `sever` is cancelled.
/// The listener is dropped with the returned future.
pub(super) async fn accept(
    listener: UnixListener,
    accepted: mpsc::Sender<io::Result<SeverableConnection>>,
    stop: CancellationToken,
    sever: CancellationToken,
) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let serve = async {
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
                return;
            };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%error, "kubelet's connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let connection = SeverableConnection {
                stream,
                severed: Box::pin(sever.clone().cancelled_owned()),
                _permit: permit,
            };
            if accepted.send(Ok(connection)).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = serve => {}
    }
}

impl SeverableConnection {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.severed.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for SeverableConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for SeverableConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Connected for SeverableConnection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}
