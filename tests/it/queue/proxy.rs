//! A TCP proxy in front of Postgres that can go silent without closing anything, or close whatever it accepts, at once or later.
//!
//! It reads the start-up message of each connection, so that one part of a worker can be cut off by its
//! `application_name`. Grants nobody TLS.

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

/// The message in front of the start-up message in which a client asks for TLS, after its length.
const SSL_REQUEST: [u8; 4] = 80_877_103_u32.to_be_bytes();

/// Which connections are silent.
#[derive(Debug, Clone, Default)]
struct Silence {
    all: bool,
    /// Connections are closed instead, also those that exist.
    closing: bool,
    /// Connections with this number and above are closed once they have said who they are.
    closing_from: Option<usize>,
    /// Connections of this name that were made before, by their number.
    frozen: Vec<(String, usize)>,
}

/// A running proxy.
pub struct Proxy {
    address: SocketAddr,
    upstream: Arc<Mutex<Upstream>>,
    silence: Arc<watch::Sender<Silence>>,
    /// The names of the connections, in the order in which they were made.
    names: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

/// Where the server listens.
#[derive(Debug, Clone)]
enum Upstream {
    Socket(PathBuf),
    Tcp(String, u16),
}

impl Proxy {
    /// A proxy to the server of `options`.
    pub async fn start(options: &PgConnectOptions) -> Self {
        let upstream = Arc::new(Mutex::new(Upstream::of(options)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let silence = Arc::new(watch::Sender::new(Silence::default()));
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

    /// New connections lead to another server from now on.
    pub fn lead_to(&self, options: &PgConnectOptions) {
        *self.upstream.lock().unwrap_or_else(PoisonError::into_inner) = Upstream::of(options);
    }

    /// The address of the database behind the proxy.
    pub fn url(&self, options: &PgConnectOptions) -> String {
        let mut url = options.to_url_lossy();
        url.set_query(Some("sslmode=disable"));
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(self.address.port())).unwrap();
        url.to_string()
    }

    /// The same for a client that asks for TLS and does without, as most do. One that is closed then returns `Protocol`.
    pub fn url_with_tls_preferred(&self, options: &PgConnectOptions) -> String {
        self.url(options).replace("sslmode=disable", "sslmode=prefer")
    }

    /// From now on nothing passes, and nothing is closed.
    pub fn stall(&self) {
        self.silence.send_modify(|silence| silence.all = true);
    }

    /// From now on every connection is accepted and closed, as by a balancer without a server behind it.
    pub fn close(&self) {
        self.silence.send_modify(|silence| silence.closing = true);
    }

    /// The first `n_passed` connections pass, and later ones are accepted and closed.
    pub fn close_after(&self, n_passed: usize) {
        self.silence.send_modify(|silence| silence.closing_from = Some(n_passed));
    }

    /// What was held up passes again, and new connections do.
    pub fn heal(&self) {
        self.silence.send_modify(|silence| {
            silence.all = false;
            silence.closing = false;
            silence.closing_from = None;
        });
    }

    /// The connections of this name that exist now never speak again; new ones do.
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
        // It was just told to be cut off; that is no failure.
        let _ = self.accepting.await;
    }

    /// How many connections of this name were ever made.
    pub fn n_made(&self, name: &str) -> usize {
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

impl Silence {
    fn covers(&self, name: &str, number: usize) -> bool {
        self.all || self.frozen.iter().any(|(frozen, at)| frozen == name && *at == number)
    }
}

async fn pass(
    mut client: TcpStream,
    upstream: Upstream,
    silence: watch::Receiver<Silence>,
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
    silence: watch::Receiver<Silence>,
    me: (String, usize),
) -> io::Result<()> {
    let (from_client, to_client) = tokio::io::split(client);
    let (from_server, mut to_server) = tokio::io::split(server);
    wait_for_speech(&mut silence.clone(), &me).await;
    to_server.write_all(start_up).await?;
    // The first direction that ends takes the other with it.
    tokio::select! {
        ended = copy(from_client, to_server, silence.clone(), &me) => ended,
        ended = copy(from_server, to_client, silence.clone(), &me) => ended,
        _ = async { silence.clone().wait_for(|silence| silence.closing).await.map(drop) } => Ok(()),
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut silence: watch::Receiver<Silence>,
    me: &(String, usize),
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = from.read(&mut buffer).await?;
        // Also the end of a connection is held up: the other side must not learn of it.
        wait_for_speech(&mut silence, me).await;
        if n == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..n]).await?;
    }
}

async fn wait_for_speech(silence: &mut watch::Receiver<Silence>, me: &(String, usize)) {
    // It fails when the proxy is gone, and the connection with it.
    let _ = silence.wait_for(|silence| !silence.covers(&me.0, me.1)).await;
}

async fn read_start_up(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = client.read_u32().await?;
    let mut message = length.to_be_bytes().to_vec();
    message.resize(length as usize, 0);
    client.read_exact(&mut message[4..]).await?;
    Ok(message)
}

/// The value of a parameter in a start-up message: length, version, then names and values that end with a zero.
fn parameter(start_up: &[u8], name: &str) -> String {
    let mut words = start_up.get(8..).unwrap_or_default().split(|byte| *byte == 0);
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        if key == name.as_bytes() {
            return String::from_utf8_lossy(value).into_owned();
        }
    }
    String::new()
}
