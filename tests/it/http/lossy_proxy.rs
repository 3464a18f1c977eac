//! A proxy to Postgres that loses the answer to one statement, and the connection with it. Later statements pass.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split},
    net::{TcpListener, TcpStream, UnixStream},
};

/// Message of Postgres after a committed statement.
const READY_FOR_QUERY: &[u8] = b"Z\0\0\0\x05I";

/// The proxy.
pub struct LossyProxy {
    /// URL of the database through the proxy.
    pub url: String,
    has_lost: Arc<AtomicBool>,
}

impl LossyProxy {
    /// Starts a proxy. The statement is the one that contains the last of `words`, after statements of its connection with the others.
    pub async fn start(options: &PgConnectOptions, words: &'static [&'static str]) -> Self {
        let (port, socket) = (options.get_port(), options.get_socket().cloned());
        let host = options.get_host().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let has_lost = Arc::<AtomicBool>::default();
        let lost = Arc::clone(&has_lost);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (socket, host, lost) = (socket.clone(), host.clone(), Arc::clone(&lost));
                tokio::spawn(async move {
                    match socket {
                        Some(folder) => {
                            let path = folder.join(format!(".s.PGSQL.{port}"));
                            let server = UnixStream::connect(path).await.unwrap();
                            carry(client, server, words, &lost).await;
                        }
                        None => {
                            let server = TcpStream::connect((host, port)).await.unwrap();
                            carry(client, server, words, &lost).await;
                        }
                    }
                });
            }
        });
        let mut url = options.to_url_lossy();
        url.set_query(Some("sslmode=disable"));
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(address.port())).unwrap();
        Self { url: url.to_string(), has_lost }
    }

    /// Returns true if the answer was lost.
    pub fn has_lost(&self) -> bool {
        self.has_lost.load(Ordering::Relaxed)
    }
}

async fn carry<S: AsyncRead + AsyncWrite>(
    client: TcpStream,
    server: S,
    words: &[&str],
    has_lost: &AtomicBool,
) {
    let (mut from_client, mut to_client) = split(client);
    let (mut from_server, mut to_server) = split(server);
    let is_asked = AtomicBool::new(false);
    let asks = async {
        let (mut buffer, mut words) = (vec![0; 64 * 1024], words.iter().peekable());
        while let Ok(n @ 1..) = from_client.read(&mut buffer).await {
            let has = |word: &str| buffer[..n].windows(word.len()).any(|it| it == word.as_bytes());
            if words.next_if(|word| has(word)).is_some() && words.peek().is_none() {
                is_asked.store(!has_lost.swap(true, Ordering::Relaxed), Ordering::Relaxed);
            }
            to_server.write_all(&buffer[..n]).await.unwrap();
        }
    };
    let answers = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n @ 1..) = from_server.read(&mut buffer).await {
            if is_asked.load(Ordering::Relaxed) {
                // After the commit.
                if buffer[..n].ends_with(READY_FOR_QUERY) {
                    return;
                }
            } else if to_client.write_all(&buffer[..n]).await.is_err() {
                return;
            }
        }
    };
    // The end of one direction ends the other.
    tokio::select! {
        () = asks => {}
        () = answers => {}
    }
}
