//! A TLS server whose certificate is expired and self-signed.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use rustls::{
    ServerConfig, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer},
};

/// The server runs until the end of the process.
pub struct UntrustedServer(SocketAddr);

const CERTIFICATE: &[u8] = include_bytes!("../../data/tls/expired.der");
const KEY: &[u8] = include_bytes!("../../data/tls/expired_key.der");

impl UntrustedServer {
    pub fn start() -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(CERTIFICATE.to_vec())],
                PrivateKeyDer::try_from(KEY.to_vec()).unwrap(),
            );
        let config = Arc::new(config.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut socket in listener.incoming().flatten() {
                let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                // The client refuses the certificate and disconnects.
                _ = connection.complete_io(&mut socket);
            }
        });
        Self(addr)
    }

    pub fn base_url(&self) -> String {
        format!("https://{}", self.0)
    }
}
