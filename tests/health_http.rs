//! The health server over real connections.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ascend_agent::clock::SystemClock;
use ascend_agent::domain::vitals::Vitals;
use ascend_agent::health_http::{Tls, TlsError, bind, serve};
use ascend_agent::ports::Clock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion, version::TLS12, version::TLS13,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const PATIENCE: Duration = Duration::from_secs(20);

struct Server {
    address: SocketAddr,
    vitals: watch::Sender<Vitals>,
    clock: Arc<dyn Clock>,
    tracker: TaskTracker,
    cancel: CancellationToken,
}

impl Server {
    async fn start(tls: Option<Tls>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::open().unwrap());
        let at = clock.now().boot_time;
        let (vitals, seen) = watch::channel(Vitals {
            at,
            stuck: Vec::new(),
            shortcomings: Vec::new(),
        });
        let listener = bind(&["127.0.0.1:0".parse().unwrap()]).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        serve(listener, tls, seen, Arc::clone(&clock), &tracker, &cancel);
        Self {
            address,
            vitals,
            clock,
            tracker,
            cancel,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn ask(&self, request: &str) -> String {
        ask(self.connect().await, request).await
    }
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> String {
    stream
        .write_all(format!("{request}\r\nHost: x\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer))
        .await
        .expect("an answer in time")
        .unwrap();
    answer
}

#[tokio::test]
async fn each_path_and_method_has_its_answer_and_the_connection_ends() {
    let server = Server::start(None).await;
    for (request, begins, ends) in [
        ("GET / HTTP/1.1", "HTTP/1.1 200 ", "\r\n\r\nok"),
        ("GET /healthz?x=1 HTTP/1.1", "HTTP/1.1 200 ", "ok"),
        ("GET /readyz HTTP/1.0", "HTTP/1.0 200 ", "ok"),
        ("GET /other HTTP/1.1", "HTTP/1.1 404 ", "not found\n"),
        ("POST / HTTP/1.1", "HTTP/1.1 405 ", "GET only\n"),
        ("nonsense", "HTTP/1.1 400 ", ""),
    ] {
        let answer = server.ask(request).await;
        assert!(answer.starts_with(begins), "{request}: {answer}");
        assert!(answer.ends_with(ends), "{request}: {answer}");
    }
}

#[tokio::test]
async fn what_the_agent_finds_is_what_the_next_probe_hears() {
    let server = Server::start(None).await;
    server.vitals.send_modify(|vitals| {
        vitals.shortcomings = vec!["no chips".to_owned(), "no store".to_owned()];
    });
    assert!(server.ask("GET / HTTP/1.1").await.ends_with("ok"));
    let poor = server.ask("GET /readyz HTTP/1.1").await;
    assert!(poor.starts_with("HTTP/1.1 503 "), "{poor}");
    assert!(poor.ends_with("no chips\nno store\n"), "{poor}");
    server.vitals.send_modify(|vitals| {
        vitals.stuck = vec!["hangs".to_owned()];
        vitals.at = server.clock.now().boot_time;
    });
    let stuck = server.ask("GET / HTTP/1.1").await;
    assert!(
        stuck.starts_with("HTTP/1.1 503 ") && stuck.ends_with("hangs\n"),
        "{stuck}"
    );
}

#[tokio::test]
async fn w18_whoever_holds_connections_open_locks_no_prober_out() {
    let server = Server::start(None).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(server.connect().await);
    }
    for _ in 0..20 {
        assert!(server.ask("GET / HTTP/1.1").await.ends_with("ok"));
    }
    let mut ended = [0_u8; 1];
    let first = timeout(PATIENCE, idle[0].read(&mut ended))
        .await
        .expect("in time");
    assert!(matches!(first, Ok(0) | Err(_)), "the oldest had to go");
}

#[tokio::test]
async fn a_request_that_never_ends_is_broken_off() {
    let server = Server::start(None).await;
    let mut slow = server.connect().await;
    slow.write_all(b"GET / HTTP/1.1\r\nHost:").await.unwrap();
    let mut rest = Vec::new();
    timeout(PATIENCE, slow.read_to_end(&mut rest))
        .await
        .expect("ended in time")
        .ok();
    assert!(!String::from_utf8_lossy(&rest).contains(" 200 "));
    let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(64 * 1024));
    let mut stream = server.connect().await;
    // The server may hang up while we still write.
    stream.write_all(long.as_bytes()).await.ok();
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .expect("ended in time")
        .ok();
    assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
}

#[tokio::test]
async fn the_end_of_the_agent_ends_every_connection() {
    let server = Server::start(None).await;
    let _idle = server.connect().await;
    server.cancel.cancel();
    server.tracker.close();
    timeout(PATIENCE, server.tracker.wait())
        .await
        .expect("ended in time");
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let server = Server::start(None).await;
    let error = bind(&[server.address]).await.unwrap_err().to_string();
    assert!(error.contains(&server.address.to_string()), "{error}");
}

struct Files {
    dir: tempfile::TempDir,
    certificate: CertificateDer<'static>,
}

impl Files {
    fn make() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("cert.pem"), made.cert.pem()).unwrap();
        fs::write(dir.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let certificate = made.cert.der().clone();
        Self { dir, certificate }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn load(&self) -> Result<Tls, TlsError> {
        Tls::load(&self.path("cert.pem"), &self.path("key.pem"))
    }

    fn client(&self, versions: &[&'static SupportedProtocolVersion]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    }
}

#[tokio::test]
async fn with_a_certificate_probes_are_answered_over_tls_only() {
    let files = Files::make();
    let server = Server::start(Some(files.load().unwrap())).await;
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let name = ServerName::try_from("localhost").unwrap();
        let stream = files
            .client(versions)
            .connect(name, server.connect().await)
            .await
            .unwrap();
        assert!(ask(stream, "GET / HTTP/1.1").await.ends_with("ok"));
    }
    let mut plain = server.connect().await;
    plain
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, plain.read_to_end(&mut answer))
        .await
        .expect("ended in time")
        .ok();
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1"));
}

#[test]
fn what_is_wrong_with_certificate_or_key_is_named() {
    let files = Files::make();
    let other = Files::make();
    let wrong = |cert: &PathBuf, key: &PathBuf| Tls::load(cert, key).unwrap_err().to_string();
    let (cert, key) = (files.path("cert.pem"), files.path("key.pem"));
    assert!(wrong(&cert, &other.path("key.pem")).contains("cannot be used together"));
    assert!(wrong(&key, &key).contains("holds no certificate"));
    assert!(wrong(&cert, &cert).contains("no private key"));
    assert!(wrong(&files.path("no.pem"), &key).contains("no.pem"));
}
