//! A TCP proxy in front of Postgres that can go silent without closing connections, or close accepted ones, at once or
//! later.
//!
//! It reads the start-up message of each connection, so that one part of a worker can be cut off by its
//! `application_name`. It refuses TLS.

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// Code of the TLS request, which precedes the start-up message, after its length.
const SSL_REQUEST: [u8; 4] = 80_877_103_u32.to_be_bytes();

/// The silent connections.
#[derive(Debug, Clone, Default)]
struct SilentConnections {
    all: bool,
    /// True: all connections are closed instead, existing ones included.
    closing: bool,
    /// Connections with this number and above are closed after their start-up message.
    closing_from: Option<usize>,
    /// Existing connections that are frozen, by name and number.
    frozen: Vec<(String, usize)>,
}

/// A running proxy.
pub struct Proxy {
    address: SocketAddr,
    upstream: Arc<Mutex<Upstream>>,
    silence: Arc<watch::Sender<SilentConnections>>,
    /// Names of the connections, in the order of their creation.
    names: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

/// Address of the server.
#[derive(Debug, Clone)]
enum Upstream {
    Socket(PathBuf),
    Tcp(String, u16),
}

impl Proxy {
    /// Starts a proxy to the server of `options`.
    pub async fn start(options: &PgConnectOptions) -> Self {
        let upstream = Arc::new(Mutex::new(Upstream::of(options)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let silence = Arc::new(watch::Sender::new(SilentConnections::default()));
        let names = Arc::<Mutex<Vec<String>>>::default();
        let (heard, known) = (Arc::clone(&silence), Arc::clone(&names));
        let leads_to = Arc::clone(&upstream);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let upstream = leads_to.lock().unwrap_or_else(PoisonError::into_inner).clone();
                connections.spawn(pass(client, upstream, heard.subscribe(), Arc::clone(&known)));
            }
        });
        Self { address, upstream, silence, names, accepting }
    }

    /// Leads new connections to another server.
    pub fn redirect_to(&self, options: &PgConnectOptions) {
        *self.upstream.lock().unwrap_or_else(PoisonError::into_inner) = Upstream::of(options);
    }

    /// Returns the URL of the database through the proxy.
    pub fn url(&self, options: &PgConnectOptions) -> String {
        let mut url = options.to_url_lossy();
        url.set_query(Some("sslmode=disable"));
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(self.address.port())).unwrap();
        url.to_string()
    }

    /// Like `url`, for a client that requests TLS and accepts its absence, as most do. If the connection is closed
    /// then, the error is `Protocol`.
    pub fn url_with_tls_preferred(&self, options: &PgConnectOptions) -> String {
        self.url(options).replace("sslmode=disable", "sslmode=prefer")
    }

    /// Stalls all connections without closing them.
    pub fn stall(&self) {
        self.silence.send_modify(|silence| silence.all = true);
    }

    /// Accepts and closes all connections, like a balancer without a server.
    pub fn close(&self) {
        self.silence.send_modify(|silence| silence.closing = true);
    }

    /// Passes the first `n_passed` connections, and accepts and closes later ones.
    pub fn close_after(&self, n_passed: usize) {
        self.silence.send_modify(|silence| silence.closing_from = Some(n_passed));
    }

    /// Passes held data and new connections again.
    pub fn resume_traffic(&self) {
        self.silence.send_modify(|silence| {
            silence.all = false;
            silence.closing = false;
            silence.closing_from = None;
        });
    }

    /// Freezes the existing connections of this name; new ones work.
    pub fn freeze(&self, name: &str) -> usize {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let frozen: Vec<_> = (0..names.len())
            .filter(|number| names[*number] == name)
            .map(|number| (name.to_owned(), number))
            .collect();
        self.silence.send_modify(|silence| silence.frozen.extend_from_slice(&frozen));
        frozen.len()
    }

    /// Breaks all connections, and returns when they are broken.
    pub async fn end(self) {
        self.accepting.abort();
        // Aborting it is not a failure.
        let _ = self.accepting.await;
    }

    /// Returns the number of connections of this name so far.
    pub fn n_connections(&self, name: &str) -> usize {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().filter(|known| *known == name).count()
    }
}

impl Upstream {
    fn of(options: &PgConnectOptions) -> Self {
        let port = options.get_port();
        match options.get_socket() {
            Some(folder) => Self::Socket(folder.join(format!(".s.PGSQL.{port}"))),
            None => Self::Tcp(options.get_host().to_owned(), port),
        }
    }
}

impl SilentConnections {
    fn covers(&self, name: &str, number: usize) -> bool {
        self.all || self.frozen.iter().any(|(frozen, at)| frozen == name && *at == number)
    }
}

async fn pass(
    mut client: TcpStream,
    upstream: Upstream,
    silence: watch::Receiver<SilentConnections>,
    names: Arc<Mutex<Vec<String>>>,
) -> io::Result<()> {
    let start_up = loop {
        let message = read_start_up(&mut client).await?;
        if silence.borrow().closing {
            return Ok(());
        }
        if message[4..] != SSL_REQUEST {
            break message;
        }
        client.write_all(b"N").await?;
    };
    let name = parameter(&start_up, "application_name");
    let number = {
        let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
        names.push(name.clone());
        names.len() - 1
    };
    if silence.borrow().closing_from.is_some_and(|from| number >= from) {
        return Ok(());
    }
    let me = (name, number);
    match upstream {
        Upstream::Socket(path) => {
            carry(client, UnixStream::connect(path).await?, &start_up, silence, me).await
        }
        Upstream::Tcp(host, port) => {
            carry(client, TcpStream::connect((host, port)).await?, &start_up, silence, me).await
        }
    }
}

async fn carry<S: AsyncRead + AsyncWrite>(
    client: TcpStream,
    server: S,
    start_up: &[u8],
    silence: watch::Receiver<SilentConnections>,
    me: (String, usize),
) -> io::Result<()> {
    let (from_client, to_client) = tokio::io::split(client);
    let (from_server, mut to_server) = tokio::io::split(server);
    wait_for_speech(&mut silence.clone(), &me).await;
    to_server.write_all(start_up).await?;
    // The end of one direction ends the other.
    tokio::select! {
        ended = copy(from_client, to_server, silence.clone(), &me) => ended,
        ended = copy(from_server, to_client, silence.clone(), &me) => ended,
        _ = async { silence.clone().wait_for(|silence| silence.closing).await.map(drop) } => Ok(()),
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut silence: watch::Receiver<SilentConnections>,
    me: &(String, usize),
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = from.read(&mut buffer).await?;
        // The end of a connection is delayed, too: the other side must not notice it.
        wait_for_speech(&mut silence, me).await;
        if n == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..n]).await?;
    }
}

async fn wait_for_speech(silence: &mut watch::Receiver<SilentConnections>, me: &(String, usize)) {
    // Fails when the proxy has ended, and its connections with it.
    let _ = silence.wait_for(|silence| !silence.covers(&me.0, me.1)).await;
}

async fn read_start_up(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = client.read_u32().await?;
    let mut message = length.to_be_bytes().to_vec();
    message.resize(length as usize, 0);
    client.read_exact(&mut message[4..]).await?;
    Ok(message)
}

/// Returns a parameter of a start-up message: length, version, then names and values that end with a zero.
fn parameter(start_up: &[u8], name: &str) -> String {
    let mut words = start_up.get(8..).unwrap_or_default().split(|byte| *byte == 0);
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        if key == name.as_bytes() {
            return String::from_utf8_lossy(value).into_owned();
        }
    }
    String::new()
}
