//! Control of a context, as its flags.

use keelway_domain::sequences::Flags;
use keelway_engine::sequences::commands::{Control, desired};

#[test]
fn control_as_flags() {
    let none = Flags::default();
    let paused = desired(&none, None, Control::Pause).unwrap();
    assert!(paused.pauses("dev") && desired(&paused, None, Control::Pause).unwrap() == paused);
    assert!(desired(&paused, Some("dev"), Control::Resume).is_err());
    assert_eq!(desired(&paused, None, Control::Resume).unwrap(), none);

    let closed = Flags { aborted: Flags::ALL, ..Flags::default() };
    assert!(closed.aborts("dev", 0) && desired(&closed, None, Control::Abort).unwrap() == closed);

    let dev = desired(&none, Some("dev"), Control::Pause).unwrap();
    assert!(dev.pauses("dev") && !dev.pauses("prod"));
    assert_eq!(desired(&dev, Some("dev"), Control::Resume).unwrap(), none);

    let aborted = desired(&none, None, Control::Abort).unwrap();
    assert!(aborted.aborts("dev", 0) && !aborted.aborts("dev", aborted.epoch));
    for before in [&paused, &dev] {
        assert!(!desired(before, None, Control::Abort).unwrap().pauses("dev"), "an abort ends a pause");
    }
    assert!(desired(&paused, Some("dev"), Control::Abort).unwrap().pauses("dev"), "that of the context stays");
    assert!(!desired(&dev, Some("dev"), Control::Abort).unwrap().pauses("dev"));
    let again = desired(&aborted, Some("prod"), Control::Abort).unwrap();
    assert!(again.aborts("prod", 1) && !again.aborts("dev", 1) && !again.aborts("prod", 2));
}
