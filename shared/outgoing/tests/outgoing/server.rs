//! A server that really listens, and a resolver that changes its mind.

use keelway_outgoing::Lookup;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

pub const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Answers every connection with the same bytes. How many there were.
pub struct Server {
    pub port: u16,
    connections: Arc<AtomicUsize>,
    pub got: Arc<Mutex<String>>,
}

impl Server {
    pub async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), connections: Arc::default(), got: Arc::default() };
        let (connections, got, answer) = (server.connections.clone(), server.got.clone(), answer.into());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (answer, got) = (answer.clone(), got.clone());
                tokio::spawn(async move {
                    let mut buffer = vec![0; 4096];
                    let n = stream.read(&mut buffer).await.unwrap_or_default();
                    got.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..n]));
                    // It may hang up before everything is written.
                    drop(stream.write_all(&answer).await);
                    // It never closes the connection itself.
                    std::future::pending::<()>().await;
                });
            }
        });
        server
    }
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// One answer after the other, and then the last one for ever.
#[derive(Clone)]
pub struct Answers(Arc<Mutex<Vec<Vec<IpAddr>>>>, pub Arc<AtomicUsize>);

impl Answers {
    pub fn of(answers: &[&[&str]]) -> Self {
        let parse = |one: &&[&str]| one.iter().map(|address| address.parse().unwrap()).collect();
        Self(Arc::new(Mutex::new(answers.iter().map(parse).collect())), Arc::default())
    }
}

impl Lookup for Answers {
    fn lookup(&self, _: &str) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.0.lock().unwrap();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        Box::pin(async move { Ok(answer) })
    }
}
