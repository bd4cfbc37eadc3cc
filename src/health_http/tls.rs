//! Certificate and key.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// A longer file is no certificate chain.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// TLS 1.2 and newer with one certificate, read once.
#[derive(Clone)]
pub struct Tls(pub(super) TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Why certificate and key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file holds no PEM of the kind that is needed, or cannot be read.
    #[error("{path} holds no {what} in PEM form that can be read; name another file")]
    Pem {
        /// The file.
        path: PathBuf,
        /// Certificate or private key.
        what: &'static str,
        /// The reason.
        #[source]
        source: pem::Error,
    },
    /// There is no certificate in it.
    #[error("{path} holds no certificate; name a PEM file with the whole chain")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read, or is no file to wait for.
    #[error("{path} cannot be read; name a plain file of at most {FILE_MAX_BYTES} bytes")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// They do not belong together or are of a kind nobody takes.
    #[error("certificate {certificate} and key {key} cannot be used together; make them anew")]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The reason.
        #[source]
        source: rustls::Error,
    },
}

impl Tls {
    /// Reads a certificate chain and its key.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let unread = |path: &Path, what| {
            let path = path.to_owned();
            move |source| TlsError::Pem { path, what, source }
        };
        let chain = CertificateDer::pem_slice_iter(&plain(certificate)?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(unread(certificate, "certificate"))?;
        if chain.is_empty() {
            return Err(TlsError::Empty {
                path: certificate.to_owned(),
            });
        }
        let private =
            PrivateKeyDer::from_pem_slice(&plain(key)?).map_err(unread(key, "private key"))?;
        let pair = |source| TlsError::Pair {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            source,
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(pair)?
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

/// Reads a file; a pipe would keep the start waiting for ever.
fn plain(path: &Path) -> Result<Vec<u8>, TlsError> {
    let read = || {
        let meta = fs::metadata(path)?;
        if !meta.is_file() || meta.len() > FILE_MAX_BYTES {
            return Err(io::Error::other("it is not a plain file, or too long"));
        }
        fs::read(path)
    };
    read().map_err(|source| TlsError::File {
        path: path.to_owned(),
        source,
    })
}
