//! Any two texts as a pattern and a subject.
#![no_main]

use kandev_host::domain::subject::{Pattern, Subject, matches};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (&str, &str)| {
    let (pattern, subject) = texts;
    assert!(matches(subject, subject));
    if let Ok(subject) = Subject::new(subject) {
        assert!(Pattern::new(">").matches(&subject));
        let _ = Pattern::new(pattern).matches(&subject);
    }
});
