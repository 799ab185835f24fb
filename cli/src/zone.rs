//! Times of day as the person at this machine reads them.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use keelway_domain::time::Timestamp;

/// A time in this machine's zone: `2026-11-23 09:00 CET`; seconds only if they are not zero.
pub fn local(time: Timestamp) -> String {
    shown(time, here())
}

fn shown(time: Timestamp, zone: Tz) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(time.0).unwrap_or_default().with_timezone(&zone);
    let form = if time.timestamp() % 60 == 0 { "%Y-%m-%d %H:%M %Z" } else { "%Y-%m-%d %H:%M:%S %Z" };
    time.format(form).to_string()
}

/// The zone that `TZ` names, or the machine's; UTC if neither is known by name.
fn here() -> Tz {
    if let Ok(name) = std::env::var("TZ") {
        return named(&name).unwrap_or(Tz::UTC);
    }
    let link = std::fs::read_link("/etc/localtime").ok();
    link.and_then(|path| named(path.to_str()?)).unwrap_or(Tz::UTC)
}

/// `Europe/Berlin`, `:Europe/Berlin`, or a file of the zone database.
fn named(name: &str) -> Option<Tz> {
    let name = name.trim_start_matches(':');
    name.rsplit_once("zoneinfo/").map_or(name, |(_, name)| name).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_is_named_and_follows_its_summer_time() {
        let berlin = named("/usr/share/zoneinfo/Europe/Berlin").unwrap();
        let time = |text: &str| Timestamp::parse(text).unwrap();
        assert_eq!(shown(time("2026-11-23T08:00:00Z"), berlin), "2026-11-23 09:00 CET");
        assert_eq!(shown(time("2026-07-23T08:00:05Z"), berlin), "2026-07-23 10:00:05 CEST");
        assert_eq!(shown(time("2026-07-23T08:00:00Z"), Tz::UTC), "2026-07-23 08:00 UTC");
        assert_eq!((named(":Asia/Kolkata"), named("CET-1CEST")), (Some(Tz::Asia__Kolkata), None));
    }
}
