//! One-time mutual TLS: an own certificate for each start, and the peer's pinned byte for byte.
//!
//! Owns the certificate and the two rustls configurations. Sockets are `dial`'s and `serve`'s part. The peer's
//! certificate came over a private pipe (or the environment), so equality with it is stronger than any chain check, and
//! its names, dates and CA flag need none: go-plugin's is a CA used as an end entity, which the usual verifier refuses.

use std::sync::{Arc, LazyLock};

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};
use thiserror::Error as ThisError;
use time::{Duration, OffsetDateTime};

/// The name in every go-plugin certificate, and the one Go asks for when it connects.
pub(crate) const SERVER_NAME: &str = "localhost";

/// grpc-go 1.67 and newer closes a connection that did not negotiate this.
const ALPN_HTTP2: &[u8] = b"h2";

/// The provider of every configuration here, named explicitly so that another one in the program cannot be picked.
/// It must be aws-lc: ring cannot verify the P-521 signatures of Go plugins.
static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

/// Why a certificate could not be made or used.
#[derive(Debug, ThisError)]
pub enum TlsError {
    /// The own certificate could not be made.
    #[error("cannot make a one-time certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// rustls refused the own certificate or key.
    #[error("cannot use the one-time certificate: {0}")]
    Use(#[from] Error),
}

/// Makes the first random draw of aws-lc-rs, which takes 40 to 100 ms in each process. Call it once at program start,
/// off the request path, or the first plugin's start pays for it.
pub fn warm_up_crypto() {
    let mut bytes = [0; 32];
    if PROVIDER.secure_random.fill(&mut bytes).is_err() {
        tracing::warn!("the system's random source failed; tls connections to plugins will fail too");
    }
}

/// A certificate of one start with its private key, which never leaves the process. Not printable on purpose.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    pem: String,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Identity {
    /// P-256, not a CA, for `localhost`, both key usages: each of these was measured to be needed or to be accepted by
    /// the Go library in either role.
    pub(crate) fn generate() -> Result<Identity, TlsError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new([SERVER_NAME.to_owned()])?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        // Dated back for clocks that are set while both sides start; long, since a plugin may run for years.
        let now = OffsetDateTime::now_utc();
        params.not_before = now - Duration::minutes(5);
        params.not_after = now + Duration::days(365 * 30);
        let certificate = params.self_signed(&key)?;
        Ok(Identity {
            pem: certificate.pem(),
            certificate: certificate.into(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
        })
    }

    /// The certificate for `PLUGIN_CLIENT_CERT`.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// The certificate for the handshake line.
    pub(crate) fn der(&self) -> &[u8] {
        &self.certificate
    }

    /// A client that shows this certificate and accepts only a server with `peer`.
    pub(crate) fn client_config(&self, peer: &[u8]) -> Result<Arc<ClientConfig>, TlsError> {
        let mut config = ClientConfig::builder_with_provider(PROVIDER.clone())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned::new(peer)))
            .with_client_auth_cert(vec![self.certificate.clone()], self.private_key())?;
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
        Ok(Arc::new(config))
    }

    /// A server that shows this certificate and accepts only a client with `peer`.
    pub(crate) fn server_config(&self, peer: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
        let mut config = ServerConfig::builder_with_provider(PROVIDER.clone())
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(Pinned::new(peer)))
            .with_single_cert(vec![self.certificate.clone()], self.private_key())?;
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
        Ok(Arc::new(config))
    }

    fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone_key())
    }
}

/// Accepts one certificate and no other, in both roles.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(certificate: &[u8]) -> Pinned {
        Pinned {
            certificate: CertificateDer::from(certificate.to_vec()),
            algorithms: PROVIDER.signature_verification_algorithms,
        }
    }

    fn same(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        if shown.as_ref() == self.certificate.as_ref() {
            Ok(())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    // The certificate is public, so showing it proves nothing: these two signatures are what proves the key.

    fn tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.same(end_entity)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls12(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls13(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.same(end_entity)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls12(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.tls13(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::sign::{CertifiedKey, SingleCertAndKey};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    fn identity() -> Identity {
        Identity::generate().expect("a certificate")
    }

    /// What client and server make of each other: the negotiated protocol, or their errors.
    async fn meet(
        client: Arc<ClientConfig>,
        server: Arc<ServerConfig>,
    ) -> (Result<Vec<u8>, String>, Result<(), String>) {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let name = ServerName::try_from(SERVER_NAME).expect("a name");
        let connect = async {
            let mut stream = TlsConnector::from(client).connect(name, near).await?;
            // With TLS 1.3 the client is done before the server has seen its certificate.
            stream.read_u8().await?;
            Ok(stream.get_ref().1.alpn_protocol().unwrap_or_default().to_vec())
        };
        let accept = async { TlsAcceptor::from(server).accept(far).await?.write_all(b"x").await };
        let (client, server) = tokio::join!(connect, accept);
        (client.map_err(|error: std::io::Error| error.to_string()), server.map_err(|error| error.to_string()))
    }

    #[tokio::test]
    async fn two_that_pinned_each_other_speak_http2() {
        let (host, guest) = (identity(), identity());
        let client = host.client_config(guest.der()).expect("a configuration");
        let server = guest.server_config(host.der()).expect("a configuration");
        assert_eq!(meet(client, server).await, (Ok(b"h2".to_vec()), Ok(())));
    }

    #[tokio::test]
    async fn another_server_certificate_is_refused() {
        let (host, guest, other) = (identity(), identity(), identity());
        let client = host.client_config(guest.der()).expect("a configuration");
        let server = other.server_config(host.der()).expect("a configuration");
        let (client, _) = meet(client, server).await;
        assert!(client.expect_err("refused").contains("invalid peer certificate"));
    }

    #[tokio::test]
    async fn another_client_certificate_is_refused() {
        let (host, guest, other) = (identity(), identity(), identity());
        let client = other.client_config(guest.der()).expect("a configuration");
        let server = guest.server_config(host.der()).expect("a configuration");
        let (client, server) = meet(client, server).await;
        assert!(server.expect_err("refused").contains("invalid peer certificate"));
        assert!(client.is_err());
    }

    #[tokio::test]
    async fn the_right_certificate_without_its_key_is_refused() {
        let (host, guest, thief) = (identity(), identity(), identity());
        let key = PROVIDER.key_provider.load_private_key(thief.private_key()).expect("a key");
        let stolen = CertifiedKey::new(vec![host.certificate.clone()], key);
        let client = ClientConfig::builder_with_provider(PROVIDER.clone())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned::new(guest.der())))
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(stolen)));
        let server = guest.server_config(host.der()).expect("a configuration");
        let (client, server) = meet(Arc::new(client), server).await;
        assert!(server.expect_err("refused").contains("BadSignature"));
        assert!(client.is_err());
    }

    #[test]
    fn warming_up_is_harmless() {
        warm_up_crypto();
    }
}
