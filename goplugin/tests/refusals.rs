//! Who may connect: the two of one start, and nobody else.

mod common;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use common::{Host, LADDER, SOON, guests};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Takes any server: these tests are about what the server takes.
#[derive(Debug)]
struct AnyServer;

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// A client with a certificate of its own, or none.
fn stranger(with_certificate: bool) -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer));
    let mut config = if with_certificate {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        builder.with_client_auth_cert(vec![made.cert.into()], key).expect("a configuration")
    } else {
        builder.with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// What becomes of a TLS client that speaks HTTP/2 to `socket`. With TLS 1.3 the server refuses only after the client
/// is done, so the first answer is read too.
async fn connect(socket: &PathBuf, config: ClientConfig) -> std::io::Result<Vec<u8>> {
    let stream = UnixStream::connect(socket).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    // A server that has refused already makes this fail; the reason is still to be read.
    let _ = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    let mut answer = vec![0; 9];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn another_certificate_or_none_is_refused_on_both_sockets() {
    for (name, guest) in guests() {
        let host = Host::new();
        let plugin = host.launch(&guest, "").await;
        host.logged("callback: ").await;
        for socket in ["plugin", "host"] {
            for with_certificate in [true, false] {
                let tried = timeout(SOON, connect(&host.socket(socket), stranger(with_certificate))).await;
                let refused = tried.expect("refused, not ignored").expect_err("a stranger is refused").to_string();
                assert!(refused.contains("alert"), "{name} {socket} {with_certificate}: {refused}");
            }
        }
        plugin.ping(Duration::from_secs(5)).await.expect("the right one is served on");
        plugin.stop(LADDER).await;
    }
}

#[tokio::test]
async fn connections_that_say_nothing_hold_up_neither_the_host_socket_nor_the_stop() {
    let mut host = Host::new();
    host.timing.accept_timeout = Duration::from_secs(2);
    let plugin = host.launch(&common::rust_guest(), "").await;
    host.logged("callback: ").await;
    let path = host.socket("host");
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(UnixStream::connect(&path).await.expect("connected"));
    }
    // More than may be open at once: the one behind them is answered when the first ones have timed out.
    let refused = timeout(SOON, connect(&path, stranger(true))).await.expect("answered").expect_err("a stranger");
    assert!(refused.to_string().contains("alert"), "{refused}");
    for mut stream in silent.drain(..8) {
        let read = timeout(SOON, stream.read(&mut [0; 1])).await.expect("closed by the host");
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
    plugin.stop(LADDER).await;
    assert_eq!(host.sockets().len(), 0);
}

#[tokio::test]
async fn clear_text_on_the_host_socket_is_refused() {
    let host = Host::new();
    let plugin = host.launch(&common::rust_guest(), "").await;
    let mut stream = UnixStream::connect(host.socket("host")).await.expect("connected");
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("written");
    let mut answer = Vec::new();
    let read = timeout(SOON, stream.read_to_end(&mut answer)).await.expect("closed by the host");
    // A TLS alert at most.
    assert!(read.is_err() || answer.len() <= 7, "{answer:?}");
    plugin.stop(LADDER).await;
}
