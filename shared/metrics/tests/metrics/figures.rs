//! The figures that `make run` plays (infra/local/figures.py), asked as any Prometheus.

use crate::ports::Ports;
use crate::series::series;
use crate::{PERIOD, measure, told};
use keelway_domain::evaluation::{MetricsApi, Prometheus};
use keelway_domain::time::Span;
use keelway_engine::ports::PortError;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A player, and its file, which goes with it.
struct Player {
    process: Child,
    file: PathBuf,
    api: MetricsApi,
}

impl Drop for Player {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
        drop(std::fs::remove_file(&self.file));
    }
}

impl Player {
    fn start(figures: &str) -> Self {
        let file = std::env::temp_dir().join(format!("keelway-figures-{}", std::process::id()));
        std::fs::write(&file, figures).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/local/figures.py");
        let mut command = Command::new(std::env::var_os("PYTHON").unwrap_or("python3".into()));
        let mut process = command.arg(script).arg(&file).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let api = MetricsApi::Prometheus(Prometheus { url: url.trim().to_owned(), ..Prometheus::default() });
        Self { process, file, api }
    }
}

#[tokio::test]
async fn figures_are_played_as_they_stand_in_the_file() {
    let player = Player::start(
        "# The shop.\nerror_rate{service=\"carts\",stage=\"staging\"} 0.02  # of one\nerror_rate{service=\"orders\"} 1e3\nbroken{a=\"b}, c\"} NaN\n\
         \"sum(rate(http_requests_total{job=\\\"carts\\\"}[5m]))\" 42.5\n",
    );
    let cases = [
        ("error_rate{service=\"carts\"}", Ok(0.02)),
        ("error_rate{service=~\"or.*\",stage=\"\"}", Ok(1000.0)),
        ("{__name__=\"error_rate\", stage!=\"\", service!~'o.*'}", Ok(0.02)),
        ("sum(rate(http_requests_total{job=\"carts\"}[5m]))", Ok(42.5)),
        ("-0.5", Ok(-0.5)),
        ("error_rate", Err("query did return multiple values")),
        ("nothing", Err("query did not return any values")),
        ("broken", Err("query did not return valid values")),
        ("x{a=~\"(\"}", Err("invalid parameter \"query\": parse error: missing ), unterminated subpattern at position 0")),
        ("sum(x)", Err("invalid parameter \"query\": parse error: 'sum(x)' is no name with matchers, and not in the file")),
    ];
    let measured = measure(&Ports::default(), player.api.clone(), &cases.map(|(query, _)| query)).await.unwrap();
    assert_eq!(told(&measured), cases.map(|(_, value)| value));
    let texts = ["error_rate{service=\"carts\"}", "-0.5", "error_rate", "nothing"];
    let found = series(&Ports::default(), player.api.clone(), &texts, PERIOD, Span::minutes(1)).await.unwrap();
    assert_eq!((found[0].as_deref(), found[1].as_deref()), (Ok(&[0.02; 5][..]), Ok(&[-0.5; 5][..])), "each step has the value");
    assert!(found[2].is_err() && found[3].is_err());
    // Whoever edits it sees the next answer change.
    std::fs::write(&player.file, "error_rate 0.5\n").unwrap();
    let changed = measure(&Ports::default(), player.api.clone(), &["error_rate"]).await.unwrap();
    assert_eq!(told(&changed), [Ok(0.5)]);
    std::fs::write(&player.file, "error_rate half\n").unwrap();
    let broken = measure(&Ports::default(), player.api.clone(), &["error_rate"]).await.unwrap_err();
    assert!(matches!(broken, PortError::Retry { .. }) && broken.to_string().contains(":1 is no figure"), "{broken}");
    let elsewhere = MetricsApi::Prometheus(Prometheus {
        url: if let MetricsApi::Prometheus(of) = &player.api { format!("{}/elsewhere", of.url) } else { String::new() },
        ..Prometheus::default()
    });
    let lost = measure(&Ports::default(), elsewhere, &["error_rate"]).await.unwrap_err();
    assert!(lost.to_string().contains("status 404: is spec.prometheus.url right?"), "{lost}");
}
