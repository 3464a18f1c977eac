//! A proxy before a service that breaks chosen requests.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// The fate of one request.
#[derive(Debug, Clone)]
pub enum Fault {
    Passes,
    /// The connection ends before the service gets the request.
    IsLost,
    /// The service gets the request, and the client no answer.
    LosesAnswer,
    /// The connection ends after so many events of the stream.
    CutsAfter(usize),
    /// An answer in place of the service's: status, lines of the head, body.
    IsRefused(u16, &'static str, &'static str),
}

/// Breaks requests whose path contains a text, one per fault and in their order. All others pass.
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    accepts: JoinHandle<()>,
}

struct State {
    service: SocketAddr,
    path: &'static str,
    faults: Mutex<VecDeque<Fault>>,
    heads: Mutex<Vec<String>>,
}

impl Proxy {
    pub async fn before(
        service: SocketAddr,
        path: &'static str,
        faults: impl IntoIterator<Item = Fault>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let faults = Mutex::new(faults.into_iter().collect());
        let state = Arc::new(State { service, path, faults, heads: Mutex::default() });
        let shared = Arc::clone(&state);
        let accepts = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                tokio::spawn(async move { state.handle(client).await });
            }
        });
        Self { address, state, accepts }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of requests with the path.
    pub fn n_requests(&self) -> usize {
        self.state.heads.lock().unwrap().len()
    }

    /// Returns a header of each request with the path.
    pub fn headers(&self, name: &str) -> Vec<Option<String>> {
        let of = |head: &String| {
            head.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        self.state.heads.lock().unwrap().iter().map(of).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepts.abort();
    }
}

impl State {
    /// Handles one request; the connection then ends.
    async fn handle(&self, client: TcpStream) {
        let mut client = BufReader::new(client);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if client.read_line(&mut head).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        client.read_exact(&mut body).await.unwrap();
        match self.next_fault(&head) {
            Fault::IsLost => {}
            Fault::IsRefused(status, lines, body) => {
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} Refused\r\nContent-Length: {length}\r\nConnection: close\r\n{lines}\r\n{body}"
                );
                let _ = client.write_all(answer.as_bytes()).await;
            }
            fault => self.pass(&head, &body, client, &fault).await,
        }
    }

    fn next_fault(&self, head: &str) -> Fault {
        if !head.lines().next().unwrap_or_default().contains(self.path) {
            return Fault::Passes;
        }
        self.heads.lock().unwrap().push(head.to_owned());
        self.faults.lock().unwrap().pop_front().unwrap_or(Fault::Passes)
    }

    async fn pass(&self, head: &str, body: &[u8], mut client: BufReader<TcpStream>, fault: &Fault) {
        let kept = head.trim_end().lines().filter(|line| !line.starts_with("connection:"));
        let head: String =
            kept.chain(["connection: close", ""]).map(|line| format!("{line}\r\n")).collect();
        let mut service = TcpStream::connect(self.service).await.unwrap();
        service.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
        let mut service = BufReader::new(service);
        let (mut line, mut n_events) = (Vec::new(), 0);
        while service.read_until(b'\n', &mut line).await.unwrap_or(0) > 0 {
            n_events += usize::from(line.starts_with(b"data: "));
            if !matches!(fault, Fault::LosesAnswer) && client.write_all(&line).await.is_err() {
                return;
            }
            line.clear();
            if matches!(fault, Fault::CutsAfter(n) if *n == n_events) {
                let _ = client.write_all(b"\n").await;
                return;
            }
        }
    }
}
