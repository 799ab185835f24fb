//! Names that are nearly right.

use keelway_engine::refusal::Refusal;

#[test]
fn a_slip_is_recognised() {
    let known = ["dev", "staging", "production"];
    for (name, meant) in [("stagin", Some("staging")), ("prod", Some("production")), ("Dev", Some("dev")), ("qa", None), ("", None)]
    {
        let told = Refusal::unknown("stage", name, known).to_string();
        assert_eq!(
            told.split_once("did you mean ").map(|(_, rest)| rest.split('?').next().unwrap()),
            meant.map(|meant| format!("{meant:?}")).as_deref(),
            "{name}"
        );
    }
    let refusal = Refusal::unknown("stage", "stagin", known);
    assert_eq!(
        refusal.to_string(),
        "stage \"stagin\" does not exist: did you mean \"staging\"? there are dev, staging, production"
    );
}
