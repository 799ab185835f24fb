//! A worker's places for requests to receivers.

use keelway_domain::time::Timestamp;
use keelway_domain::webhooks::Exchange;
use keelway_engine::webhooks::Address;
use keelway_engine::webhooks::places::*;

#[test]
fn a_receiver_that_takes_long_gets_a_third_until_it_answers_or_a_while_has_passed() {
    let (places, now) = (Places::default(), Timestamp(1_795_222_266_686));
    let of = |name: &str| Address { namespace: "p".into(), name: name.into() };
    let took = |ms| Exchange { ms, ..Exchange::default() };
    let free = |name: &str, at: Timestamp| {
        let mut taken = vec![];
        while taken.len() < PLACES
            && let Some(place) = places.take(&of(name), at)
        {
            taken.push(place);
        }
        taken.len()
    };
    assert_eq!(free("long", now), PLACES, "as long as nothing is known of it");
    places.take(&of("long"), now).unwrap().made(&took(5000), now);
    assert_eq!((free("long", now), free("quick", now)), (1, PLACES));
    assert_eq!(free("long", now + REMEMBERED), PLACES);
    places.take(&of("long"), now).unwrap().made(&took(20), now);
    assert_eq!(free("long", now), PLACES);
    assert_eq!(format!("{places:?}"), format!("{:?}", Places::default()), "nothing is kept of receivers that answer");
}
