//! The marketplace: documents that others publish and that list plugins (contract/rest.md §9).
//!
//! `source` has the rules of where such an index may be, `index` reads one, `offers` merges several, searches, sorts
//! and compares with what is installed; `verify` holds a package against what is said of it, `plan` decides what
//! becomes of a newer version. Fetching is `fetch`'s part, keeping and updating `marketplace`'s, rows are
//! `store::marketplace`'s.

mod index;
mod offers;
mod plan;
mod source;
mod verify;

pub use index::{Entry, Index, IndexFault, MAX_ENTRIES, Skipped, parse};
pub use offers::{HostRules, InstallState, Offer, Search, Sort, Stock, install_state, offers};
pub use plan::{Plan, plan};
pub use source::{BUILTIN_ID, BUILTIN_NAME, Source, SourceError, address, is_loopback, name, same_address};
pub use verify::{DigestFault, Listed, ListedAs, OtherPlugin, SaidBy, listed, listed_as, verify};
