//! A receiver of notifications that answers as told, in a thread of its own.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What it does with the next request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Answers with this status, and this `Retry-After`.
    Status(u16, Option<u64>),
    /// Takes it, and closes the connection.
    Lost,
}

/// The receiver. All clones are the same one.
#[derive(Clone)]
pub struct Receiver {
    pub url: String,
    next: Arc<Mutex<Option<Reply>>>,
    got: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Receiver {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver = Self { url, next: Arc::default(), got: Arc::default() };
        let served = receiver.clone();
        std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| served.serve(&stream)));
        receiver
    }

    /// What happens to the next request; otherwise it is accepted.
    pub fn answer(&self, reply: Reply) {
        *self.next.lock().unwrap() = Some(reply);
    }

    /// The ids and bodies that arrived since this was asked last.
    pub fn take(&self) -> Vec<(String, Value)> {
        self.next.lock().unwrap().take();
        std::mem::take(&mut self.got.lock().unwrap())
    }

    fn serve(&self, mut stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut lines = reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty());
        let heads: Vec<(String, String)> = lines
            .by_ref()
            .filter_map(|line| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned())))
            .collect();
        let head = |name: &str| heads.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone()).unwrap_or_default();
        let mut body = vec![0; head("content-length").parse().unwrap_or_default()];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        self.got.lock().unwrap().push((head("webhook-id"), serde_json::from_slice(&body).unwrap_or_default()));
        let (status, after) = match self.next.lock().unwrap().take() {
            Some(Reply::Lost) => return,
            Some(Reply::Status(status, after)) => (status, after),
            None => (204, None),
        };
        let after = after.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
        // A client that has gone needs no answer.
        drop(stream.write_all(format!("HTTP/1.1 {status} -\r\ncontent-length: 0\r\nconnection: close\r\n{after}\r\n").as_bytes()));
    }
}
