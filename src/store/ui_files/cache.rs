//! The memory of [`super::UiFiles`]: bounded in bytes; what is longest not asked for goes first.

use std::collections::{BTreeMap, HashMap};

use super::{Place, UiFile};

/// What a kept file costs beside its content and names, in bytes.
const ENTRY_BYTES: u64 = 512;

/// Kept files.
#[derive(Debug)]
pub struct Cache {
    files: HashMap<Place, Kept>,
    /// Places by when they were asked for last, the longest ago first.
    order: BTreeMap<u64, Place>,
    bytes: u64,
    limit: u64,
    clock: u64,
}

#[derive(Debug)]
struct Kept {
    file: UiFile,
    cost: u64,
    asked: u64,
}

impl Cache {
    /// With room for so many bytes.
    pub fn new(limit: u64) -> Self {
        Self { files: HashMap::new(), order: BTreeMap::new(), bytes: 0, limit, clock: 0 }
    }

    /// A kept file, which stays longer for it.
    pub fn get(&mut self, place: &Place) -> Option<UiFile> {
        let kept = self.files.get_mut(place)?;
        self.clock += 1;
        if let Some(place) = self.order.remove(&std::mem::replace(&mut kept.asked, self.clock)) {
            self.order.insert(self.clock, place);
        }
        Some(kept.file.clone())
    }

    /// Keeps a file that is in memory.
    pub fn put(&mut self, place: Place, file: &UiFile) {
        let Some(bytes) = file.bytes() else { return };
        let names = place.folder.as_os_str().len() + place.path.as_str().len();
        let cost = bytes.len() as u64 + 2 * names as u64 + ENTRY_BYTES;
        if cost > self.limit {
            return;
        }
        self.forget(&place);
        while self.bytes + cost > self.limit {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.forget(&oldest);
        }
        self.clock += 1;
        self.bytes += cost;
        self.order.insert(self.clock, place.clone());
        self.files.insert(place, Kept { file: file.clone(), cost, asked: self.clock });
    }

    fn forget(&mut self, place: &Place) {
        if let Some(kept) = self.files.remove(place) {
            self.bytes -= kept.cost;
            self.order.remove(&kept.asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::Content, *};
    use crate::domain::package::EntryPath;

    fn place(name: u8) -> Place {
        let path = EntryPath::of_file(format!("ui/{name}").as_bytes()).unwrap();
        Place { run: 1, folder: "/p".into(), path }
    }

    fn file(size: usize) -> UiFile {
        UiFile { size: size as u64, tag: String::new(), content: Content::Memory(vec![0; size].into()) }
    }

    fn kept(cache: &Cache) -> Vec<u8> {
        (0..=9).filter(|name| cache.files.contains_key(&place(*name))).collect()
    }

    #[test]
    fn what_is_longest_not_asked_for_goes_first() {
        let mut cache = Cache::new(3 * (1000 + ENTRY_BYTES + 20));
        for name in [1, 2, 3] {
            cache.put(place(name), &file(1000));
        }
        assert!(cache.get(&place(1)).is_some());
        cache.put(place(4), &file(1000));
        assert_eq!(kept(&cache), [1, 3, 4]);
        cache.put(place(5), &file(2500));
        assert_eq!(kept(&cache), [4, 5]);
        cache.put(place(6), &file(100_000));
        assert_eq!(kept(&cache), [4, 5], "what never fits pushes nothing out");
        assert!(cache.get(&place(6)).is_none());
    }

    proptest! {
        #[test]
        fn the_bound_holds_and_the_books_agree(steps in prop::collection::vec((0u8..10, 0usize..3000, any::<bool>()), 0..60)) {
            let mut cache = Cache::new(8000);
            for (name, size, put) in steps {
                if put {
                    cache.put(place(name), &file(size));
                } else if let Some(found) = cache.get(&place(name)) {
                    prop_assert_eq!(found.size, found.bytes().unwrap().len() as u64);
                }
                prop_assert!(cache.bytes <= cache.limit);
                prop_assert_eq!(cache.bytes, cache.files.values().map(|kept| kept.cost).sum::<u64>());
                prop_assert_eq!(cache.order.len(), cache.files.len());
                prop_assert!(cache.order.iter().all(|(asked, place)| cache.files[place].asked == *asked));
            }
        }
    }
}
