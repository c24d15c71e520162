//! Downloads from own servers on loopback. Where the address rule matters, 127.0.0.2 plays the public Internet and
//! 127.0.0.1 the operator's own machine.

use std::{
    collections::VecDeque,
    io,
    net::Ipv4Addr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::TryStreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;

const PUBLIC: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OWN: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A server that answers every connection with the same bytes, then does as `ending` says.
struct Server {
    port: u16,
    hits: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
enum Ending {
    Close,
    /// One more byte every few milliseconds, for ever.
    Drip,
    /// Bytes as fast as they are taken, for ever.
    Flood,
}

impl Server {
    async fn start(address: Ipv4Addr, answer: impl Fn(u16) -> String, ending: Ending) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answer, hits) = (answer(port), Arc::new(AtomicUsize::new(0)));
        let counter = hits.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(connection, answer.clone(), ending));
            }
        });
        Self { port, hits }
    }

    fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }
}

async fn serve(mut connection: TcpStream, answer: String, ending: Ending) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(connection.read_u8().await?);
    }
    connection.write_all(answer.as_bytes()).await?;
    loop {
        match ending {
            Ending::Close => return connection.shutdown().await,
            Ending::Drip => {
                connection.write_all(b"x").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ending::Flood => connection.write_all(&[b'x'; 16 * 1024]).await?,
        }
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn endless() -> String {
    "HTTP/1.1 200 OK\r\n\r\n".to_owned()
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

/// Answers one list of addresses after the other; the last one stays.
struct Names(Mutex<VecDeque<Vec<Ipv4Addr>>>);

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        let mut answers = self.0.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Ok(answer.unwrap_or_default().into_iter().map(IpAddr::from).collect())
    }
}

/// Limits small enough to meet: 100 000 bytes, 1 s, 5 redirects.
fn downloader(names: impl IntoIterator<Item = Vec<Ipv4Addr>>) -> Downloader {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let timing = Timing { download_timeout: Duration::from_secs(1), ..Timing::default() };
    let limits = Limits { package_compressed: 100_000, ..Limits::default() };
    let rule = Arc::new(|address: IpAddr| match address {
        IpAddr::V4(PUBLIC) => Ok(()),
        other => check_public(other),
    });
    Downloader::with_rule(&timing, &limits, rule, Arc::new(Names(Mutex::new(names.into_iter().collect())))).unwrap()
}

async fn body(downloader: &Downloader, url: &str) -> Result<Vec<u8>, FetchError> {
    let stream = downloader.open(url).await?.into_stream();
    stream
        .try_fold(Vec::new(), |mut all, chunk| async move {
            all.extend_from_slice(&chunk);
            Ok(all)
        })
        .await
}

#[tokio::test]
async fn a_body_arrives_unchanged() {
    let server = Server::start(PUBLIC, |_| ok("package"), Ending::Close).await;
    let url = format!("http://{PUBLIC}:{}/a.tar.gz", server.port);
    assert_eq!(body(&downloader([]), &url).await, Ok(b"package".to_vec()));
}

#[tokio::test]
async fn relative_and_absolute_redirects_are_followed() {
    let last = Server::start(PUBLIC, |_| ok("package"), Ending::Close).await;
    let port = last.port;
    let second = Server::start(PUBLIC, |_| redirect(&format!("http://pkg.test:{port}/")), Ending::Close).await;
    let port = second.port;
    let first = Server::start(PUBLIC, |_| redirect(&format!("//{PUBLIC}:{port}/x")), Ending::Close).await;
    let url = format!("http://pkg.test:{}/a.tar.gz", first.port);
    assert_eq!(body(&downloader([vec![PUBLIC]]), &url).await, Ok(b"package".to_vec()));
}

#[tokio::test]
async fn other_schemes_and_addresses_without_a_host_are_refused() {
    let cases = [
        ("ftp://host/a", "plugins: invalid install URL: unsupported scheme \"ftp\" (must be http or https)"),
        ("file:///etc/passwd", "plugins: invalid install URL: unsupported scheme \"file\" (must be http or https)"),
        ("http://", "plugins: invalid install URL: empty host"),
        ("not a url", "plugins: invalid install URL: relative URL without a base"),
    ];
    for (url, text) in cases {
        assert_eq!(body(&downloader([]), url).await.unwrap_err().to_string(), text);
    }
}

/// Field case 48 (a).
#[tokio::test]
async fn a_redirect_to_this_machine_is_refused_and_never_reaches_it() {
    let own = Server::start(OWN, |_| ok("secret"), Ending::Close).await;
    for spelling in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "own.test"] {
        let port = own.port;
        let outer = Server::start(PUBLIC, |_| redirect(&format!("http://{spelling}:{port}/")), Ending::Close).await;
        let url = format!("http://{PUBLIC}:{}/", outer.port);
        let refused = body(&downloader([vec![OWN]]), &url).await;
        assert!(matches!(refused, Err(FetchError::NotPublic(_))), "{spelling}: {refused:?}");
    }
    assert_eq!(own.hits(), 0);
}

/// Field case 48 (b).
#[tokio::test]
async fn a_redirect_to_a_file_is_refused() {
    let outer = Server::start(PUBLIC, |_| redirect("file:///etc/passwd"), Ending::Close).await;
    let refused = body(&downloader([]), &format!("http://{PUBLIC}:{}/", outer.port)).await;
    assert_eq!(refused, Err(FetchError::Scheme("file".to_owned())));
}

/// Field case 48 (c).
#[tokio::test]
async fn a_chain_of_redirects_ends_after_the_fifth() {
    let server = Server::start(PUBLIC, |port| redirect(&format!("http://{PUBLIC}:{port}/")), Ending::Close).await;
    let refused = body(&downloader([]), &format!("http://{PUBLIC}:{}/", server.port)).await;
    assert_eq!(refused, Err(FetchError::TooManyRedirects(5)));
    assert_eq!(server.hits(), 6);
}

/// Field case 48 (d).
#[tokio::test]
async fn a_name_that_leads_home_at_its_second_lookup_is_refused_then() {
    let own = Server::start(OWN, |_| ok("secret"), Ending::Close).await;
    let port = own.port;
    let outer = Server::start(PUBLIC, |_| redirect(&format!("http://rebind.test:{port}/")), Ending::Close).await;
    let names = downloader([vec![PUBLIC], vec![OWN]]);
    let refused = body(&names, &format!("http://rebind.test:{}/", outer.port)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "plugins: download package: the name leads to a loopback address only; packages are fetched from public \
         addresses only, unless install.allow_private_addresses is set"
    );
    assert_eq!((outer.hits(), own.hits()), (1, 0));
}

#[tokio::test]
async fn of_several_addresses_only_the_public_ones_are_tried() {
    let own = Server::start(OWN, |_| ok("secret"), Ending::Close).await;
    let public = TcpListener::bind((PUBLIC, own.port)).await;
    let Ok(listener) = public else { return };
    let serving =
        tokio::spawn(async move { serve(listener.accept().await.unwrap().0, ok("package"), Ending::Close).await });
    let names = downloader([vec![OWN, PUBLIC]]);
    assert_eq!(body(&names, &format!("http://two.test:{}/", own.port)).await, Ok(b"package".to_vec()));
    assert_eq!(own.hits(), 0);
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn private_addresses_are_reached_when_the_operator_allows_them() {
    let server = Server::start(OWN, |_| ok("package"), Ending::Close).await;
    let install = Install { allow_private_addresses: true, ..Install::default() };
    let downloader = Downloader::new(&Timing::default(), &Limits::default(), &install, Arc::new(SystemLookup)).unwrap();
    let url = format!("http://localhost:{}/", server.port);
    assert_eq!(body(&downloader, &url).await, Ok(b"package".to_vec()));
}

/// Field case 50.
#[tokio::test]
async fn a_body_without_end_is_cut_at_the_size_limit() {
    let server = Server::start(PUBLIC, |_| endless(), Ending::Flood).await;
    let refused = body(&downloader([]), &format!("http://{PUBLIC}:{}/", server.port)).await;
    assert_eq!(refused, Err(FetchError::TooLarge(100_000)));
}

#[tokio::test]
async fn a_package_is_staged_whole() {
    let server = Server::start(PUBLIC, |_| ok("package"), Ending::Close).await;
    let folder = tempfile::tempdir().unwrap();
    let packages = PackageStore::new(folder.path());
    let staged = downloader([]).download(&format!("http://{PUBLIC}:{}/", server.port), &packages).await.unwrap();
    assert_eq!(std::fs::read(staged.archive()).unwrap(), b"package");
}

/// Field case 50.
#[tokio::test]
async fn nothing_is_left_of_a_download_that_fails_or_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let packages = PackageStore::new(folder.path());
    for ending in [Ending::Flood, Ending::Drip] {
        let server = Server::start(PUBLIC, |_| endless(), ending).await;
        let url = format!("http://{PUBLIC}:{}/", server.port);
        let given_up = tokio::time::timeout(Duration::from_millis(300), downloader([]).download(&url, &packages)).await;
        assert!(!matches!(given_up, Ok(Ok(_))));
        downloader([]).download(&url, &packages).await.unwrap_err();
    }
    let staging = folder.path().join(".staging");
    let empty = async {
        while std::fs::read_dir(&staging).unwrap().count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), empty).await.unwrap();
}

/// Field case 50.
#[tokio::test]
async fn a_slow_body_is_cut_at_the_time_limit() {
    let server = Server::start(PUBLIC, |_| endless(), Ending::Drip).await;
    let refused = body(&downloader([]), &format!("http://{PUBLIC}:{}/", server.port)).await;
    assert_eq!(refused, Err(FetchError::TimedOut(Duration::from_secs(1))));
}

#[tokio::test]
async fn an_answer_that_never_begins_is_cut_at_the_time_limit() {
    let server = Server::start(PUBLIC, |_| String::new(), Ending::Drip).await;
    let refused = body(&downloader([]), &format!("http://{PUBLIC}:{}/", server.port)).await;
    assert!(matches!(refused, Err(FetchError::TimedOut(_) | FetchError::Connection(_))), "{refused:?}");
}

/// Field case 50.
#[tokio::test]
async fn a_length_that_lies_is_an_error_both_ways() {
    let announced = |length: u64| move |_| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nshort");
    let long = Server::start(PUBLIC, announced(100_001), Ending::Close).await;
    let refused = body(&downloader([]), &format!("http://{PUBLIC}:{}/", long.port)).await;
    assert_eq!(refused, Err(FetchError::TooLarge(100_000)));
    let short = Server::start(PUBLIC, announced(50), Ending::Close).await;
    let refused = body(&downloader([]), &format!("http://{PUBLIC}:{}/", short.port)).await;
    assert!(matches!(refused, Err(FetchError::Connection(_))), "{refused:?}");
}

#[tokio::test]
async fn an_answer_other_than_success_is_named_by_its_status() {
    for (status, error) in [
        ("404 Not Found", FetchError::Status(404)),
        ("500 Oops", FetchError::Status(500)),
        ("304 Not Modified", FetchError::Status(304)),
        ("302 Found", FetchError::BadRedirect(302)),
    ] {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        let server = Server::start(PUBLIC, |_| answer.clone(), Ending::Close).await;
        assert_eq!(body(&downloader([]), &format!("http://{PUBLIC}:{}/", server.port)).await, Err(error));
    }
}

#[tokio::test]
async fn no_error_repeats_credentials_or_a_query() {
    let refused = Server::start(PUBLIC, |_| redirect("http://u:hunter2@127.0.0.1/?t=hunter2"), Ending::Close).await;
    let urls = [
        format!("http://u:hunter2@{PUBLIC}:{}/?t=hunter2", refused.port),
        format!("http://u:hunter2@{PUBLIC}:1/?t=hunter2"),
        "http://u:hunter2@gone.test/?t=hunter2".to_owned(),
        "http://u:hunter2@bad host/".to_owned(),
        "http://u:hunter2@10.0.0.1/".to_owned(),
    ];
    for url in urls {
        let error = body(&downloader([]), &url).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
