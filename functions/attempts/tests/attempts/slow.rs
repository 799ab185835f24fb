//! Git hosts that take their time, and hosts whose answers are lost: a pull request is there within five minutes, without a hand.

use crate::requests::{Bench, FORMS, REPOSITORY, secrets};
use crate::stand::Slow;
use keelway_domain::promotions::Phase;
use keelway_domain::time::Span;
use keelway_githost::Form;
use keelway_githosts::Patience;
use std::time::Duration;

/// As often as usual, without the pauses.
const QUICK: Patience = Patience { pause: Duration::from_millis(1), ..Patience::USUAL };
const FIVE: Span = Span::minutes(5);

/// A bench whose answers take so long, in the world's time.
async fn bench(form: (Form, &str), answer: Span) -> Bench {
    let mut bench = Bench::usual(form).await;
    let (world, host) = (bench.stand.world.clone(), bench.host.clone());
    let calls = Box::new(move || host.calls().len());
    bench.stand = bench.stand.slow(secrets(), QUICK, Slow { world, calls, answer });
    bench
}

/// How long it takes from the order until the pull request is there.
async fn opened(bench: &mut Bench) -> Span {
    let ordered = bench.stand.world.now();
    bench.runs("dev", "v2").await;
    for _ in 0..60 {
        if bench.phase("staging").await.0 == Phase::Created {
            break;
        }
        bench.stand.pass(Span::seconds(10)).await;
    }
    assert_eq!(bench.host.people().pulls(REPOSITORY).unwrap().len(), 1);
    bench.stand.world.now() - ordered
}

#[tokio::test]
async fn a_pull_request_is_there_within_five_minutes_where_each_answer_takes_fifteen_seconds() {
    for form in FORMS {
        let mut bench = bench(form, Span::seconds(15)).await;
        let took = opened(&mut bench).await;
        println!("{form:?}: {took}");
        assert!(took <= FIVE, "{form:?}: {took}");
        bench.clean();
    }
}

#[tokio::test]
async fn a_pull_request_is_there_within_five_minutes_where_three_of_ten_answers_are_lost() {
    for form in FORMS {
        for seed in 1..=8 {
            let mut bench = bench(form, Span::seconds(1)).await;
            bench.host.lose_three_of_ten(seed);
            let took = opened(&mut bench).await;
            println!("{form:?}, seed {seed}: {took}");
            assert!(took <= FIVE, "{form:?}, seed {seed}: {took}");
        }
    }
}

#[tokio::test]
async fn a_pull_request_is_there_within_five_minutes_where_answers_are_slow_and_lost() {
    for form in FORMS {
        for seed in 1..=8 {
            let mut bench = bench(form, Span::seconds(15)).await;
            bench.host.lose_three_of_ten(seed);
            let took = opened(&mut bench).await;
            println!("{form:?}, seed {seed}: {took}");
            assert!(took <= FIVE, "{form:?}, seed {seed}: {took}");
        }
    }
}
