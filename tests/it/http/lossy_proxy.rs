//! A proxy to Postgres that loses the answer to one statement, and the connection with it.

use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split},
    net::{TcpListener, TcpStream, UnixStream},
};

/// Message of Postgres after a committed statement.
const READY_FOR_QUERY: &[u8] = b"Z\0\0\0\x05I";

/// Returns the address of the proxy. The statement is the one that contains `word`.
pub async fn start(options: &PgConnectOptions, word: &'static str) -> String {
    let (port, socket) = (options.get_port(), options.get_socket().cloned());
    let host = options.get_host().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (socket, host) = (socket.clone(), host.clone());
            tokio::spawn(async move {
                match socket {
                    Some(folder) => {
                        let path = folder.join(format!(".s.PGSQL.{port}"));
                        carry(client, UnixStream::connect(path).await.unwrap(), word).await;
                    }
                    None => {
                        carry(client, TcpStream::connect((host, port)).await.unwrap(), word).await;
                    }
                }
            });
        }
    });
    let mut url = options.to_url_lossy();
    url.set_query(Some("sslmode=disable"));
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(address.port())).unwrap();
    url.to_string()
}

async fn carry<S: AsyncRead + AsyncWrite>(client: TcpStream, server: S, word: &str) {
    let (mut from_client, mut to_client) = split(client);
    let (mut from_server, mut to_server) = split(server);
    let is_asked = AtomicBool::new(false);
    let asks = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n @ 1..) = from_client.read(&mut buffer).await {
            if buffer[..n].windows(word.len()).any(|window| window == word.as_bytes()) {
                is_asked.store(true, Ordering::Relaxed);
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
